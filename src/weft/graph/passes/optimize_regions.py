"""Makes the regions of control flow fast by the passes that the graph around them has been through.

Captures that have become constants are such inside of the regions too. Weights that the passes pack in a loop, and no iteration
changes, are packed before it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from weft.graph.core.graph import Graph, Node
from weft.graph.core.graph_values import Value
from weft.graph.regions.closing import with_regions, without_constants
from weft.graph.regions.hoist_packing import append_hoisted
from weft.graph.rewriting.rewriter import Inputs, rewrite_graph


def optimize_regions(graph: Graph, optimize: Callable[[Graph], Graph]) -> Graph:
    """Returns *graph* with each region optimized by *optimize*."""
    if not any(n.operator.has_regions for n in graph.nodes):
        return graph

    def rule(new: Graph, node: Node, inputs: Inputs) -> Sequence[Value] | None:
        if not node.operator.has_regions:
            return None
        known = without_constants(node, inputs)
        made = {name: optimize(a) for name, a in known.attributes if isinstance(a, Graph)}
        return append_hoisted(new, with_regions(known, made)).outputs

    return rewrite_graph(graph, rule)
