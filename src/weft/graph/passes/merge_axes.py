"""Makes one axis of those behind the axes that are reduced, where the last is short.

    y = reduce_max(x, axes=(0,))     becomes     y = reshape(reduce_max(reshape(x, (268, 685)), axes=(0,)), (1, 137, 5))

Vectors go along the last axis: 137 x 5 elements side by side fill them, 5 do not. Softmax is reduced along its axis, too.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import prod
from typing import Any

from weft.cost import MergeAxes, Planner, merge_plans, subject_of
from weft.graph.core.graph import Graph, Node
from weft.graph.core.graph_values import Value
from weft.graph.rewriting.rewriter import Inputs, rewrite_graph


def merge_axes(graph: Graph, planner: Planner) -> Graph:
    """Returns *graph* with reductions and softmax over long last axes, for a change of shape, where *planner* decides so."""

    def rule(new: Graph, node: Node, inputs: Inputs) -> Sequence[Value] | None:
        x = inputs[0] if inputs else None
        shape = None if x is None else x.static_shape
        if x is None or shape is None or node.operator.along is None:
            return None
        kept = _first_kept(node, len(shape))
        if kept is None or len(shape) - kept < 2 or prod(shape[kept:-1]) == 1:
            return None
        row, bits = shape[-1], x.dtype.bits
        if not planner.decide(subject_of(node.output.name), MergeAxes, lambda m: merge_plans(row, bits, m)).merge:
            return None
        merged = new.add("reshape", [x], shape=(*shape[:kept], prod(shape[kept:])))
        made = new.add(node.op, [merged, *inputs[1:]], source=node.source, **_from_the_front(node, len(shape)))
        return [new.add("reshape", [made], shape=node.output.shape, name=node.output.name)]

    return rewrite_graph(graph, rule)


def _first_kept(node: Node, rank: int) -> int | None:
    """Returns the first of the axes behind all that are reduced, None where all are."""
    axes = _axes(node)
    return None if not axes else max(a % rank for a in axes) + 1


def _from_the_front(node: Node, rank: int) -> dict[str, Any]:
    """Returns the attributes with axes counted from the front, as they are in the merged value as well."""
    name, axes = node.operator.along or "", tuple([a % rank for a in _axes(node) or ()])
    return {**node.keywords, name: axes[0] if name == "axis" else axes}


def _axes(node: Node) -> tuple[int, ...] | None:
    """Returns the axes that *node* works along; None for all of them."""
    found = node.attribute(node.operator.along or "")
    return (found,) if isinstance(found, int) else found
