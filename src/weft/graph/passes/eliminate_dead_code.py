"""Removes the nodes that no output and no guard depends on.

a = relu(x); b = exp(x); return a     becomes     a = relu(x); return a
"""

from __future__ import annotations

from weft.graph.core.graph import Graph
from weft.graph.rewriting.rewriter import rewrite_graph


def eliminate_dead_code(graph: Graph) -> Graph:
    """Returns *graph* without nodes that nothing needs; inputs stay, since they are the model's signature."""
    return rewrite_graph(graph, lambda new, node, inputs: None)
