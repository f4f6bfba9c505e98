"""Control flow in graphs: nodes whose attributes are graphs that run if a condition says so, or several times."""
