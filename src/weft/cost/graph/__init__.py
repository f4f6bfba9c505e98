"""Costs of the choices over the graph: layouts, packing, algorithms of convolutions."""
