"""Replaces nodes whose outputs have no elements, whatever the symbolic sizes: there is nothing to compute.

y = conv2d(x[0, 3, 8, 8], w); z = concat(reduce_sum(y), b)     becomes     y = full(); z = concat(reduce_sum(y), b)
"""

from __future__ import annotations

from weft.graph.core.graph import Graph, Node
from weft.graph.core.graph_values import Value
from weft.graph.rewriting.rewriter import Inputs, rewrite_graph
from weft.ir import ZERO


def replace_empty_tensors(graph: Graph) -> Graph:
    """Returns *graph* with each node that makes nothing but empty tensors replaced by such tensors."""

    def rule(new: Graph, node: Node, inputs: Inputs) -> list[Value] | None:
        if node.op == "full" or not all(is_empty(v) for v in node.outputs):
            return None
        return [new.add("full", [], shape=v.shape, dtype=v.dtype, source=node.source) for v in node.outputs]

    return rewrite_graph(graph, rule)


def is_empty(v: Value) -> bool:
    """Tells whether *v* has no elements, whatever the symbolic sizes."""
    return any(s is ZERO for s in v.shape)
