"""Nodes that the host computes, as those on strings: they need a runtime with the C library beside the generated code."""

from __future__ import annotations

from weft.graph.core.graph import Graph, Node
from weft.graph.regions.region_operators import regions_of


def host_node(graph: Graph) -> Node | None:
    """Returns the first node of *graph*, or of a region in it, whose operator is one of the host's; None if there is none."""
    graphs = [graph]
    while graphs:
        for node in graphs.pop().nodes:
            if node.operator.on_host:
                return node
            graphs += regions_of(node)
    return None
