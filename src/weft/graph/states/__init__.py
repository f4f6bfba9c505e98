"""States of graphs: which inputs and outputs they are, how they are declared, and which are written in place."""
