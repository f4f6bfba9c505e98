"""The kernels of the groups of a model, and the targets that groups have of their own."""
