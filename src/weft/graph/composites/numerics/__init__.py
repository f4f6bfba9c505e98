"""Functions of numerical mathematics as calls of operators: special functions, transforms, and decompositions of matrices."""
