"""Nodes computed on the host, such as those on strings, which need a runtime beside the generated code."""

from __future__ import annotations

from collections.abc import Iterator

from weft.graph.core.graph import Graph, Node
from weft.graph.regions.region_operators import regions_of


def host_nodes(graph: Graph) -> Iterator[Node]:
    """Yields the nodes of *graph*, and of regions in it, whose operator is one of the host's."""
    graphs = [graph]
    while graphs:
        for node in graphs.pop().nodes:
            if node.operator.on_host:
                yield node
            graphs += regions_of(node)
