"""Makes one axis of those behind the axes that are reduced, where the last is short.

    y = reduce_max(x, axes=(0,))     becomes     y = reshape(reduce_max(reshape(x, (268, 685)), axes=(0,)), (1, 137, 5))

Vectors go along the last axis: 137 x 5 elements side by side fill them, 5 do not. Softmax is reduced along its axis, too.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import prod
from typing import Any

from weft.graph.graph import Graph, Node, Value
from weft.graph.rewriting import Inputs, rewrite_graph
from weft.targets.target import Target

LONG_ENOUGH = 4
"""Vectors of a last axis that is left as it is."""

_SOFTMAX = frozenset({"softmax", "log_softmax"})


def merge_axes(graph: Graph, target: Target) -> Graph:
    """Returns *graph* with reductions and softmax over long last axes where these can be had for a change of shape."""

    def rule(new: Graph, node: Node, inputs: Inputs) -> Sequence[Value] | None:
        x = inputs[0] if inputs else None
        shape = None if x is None else x.static_shape
        if x is None or shape is None or not (node.op.startswith("reduce_") or node.op in _SOFTMAX):
            return None
        kept = _first_kept(node, len(shape))
        short = shape[-1] < LONG_ENOUGH * target.lanes(x.dtype.bits)
        if kept is None or len(shape) - kept < 2 or not short or prod(shape[kept:-1]) == 1:
            return None
        merged = new.add("reshape", [x], shape=(*shape[:kept], prod(shape[kept:])))
        made = new.add(node.op, [merged, *inputs[1:]], source=node.source, **_from_the_front(node, len(shape)))
        return [new.add("reshape", [made], shape=node.output.shape, name=node.output.name)]

    return rewrite_graph(graph, rule)


def _first_kept(node: Node, rank: int) -> int | None:
    """Returns the first of the axes behind all that are reduced, None where all are."""
    axes = (node.attribute("axis"),) if node.op in _SOFTMAX else node.attribute("axes")
    return None if not axes else max(a % rank for a in axes) + 1


def _from_the_front(node: Node, rank: int) -> dict[str, Any]:
    """Returns the attributes with axes counted from the front, as they are in the merged value as well."""
    if node.op in _SOFTMAX:
        return {**node.keywords, "axis": node.attribute("axis") % rank}
    return {**node.keywords, "axes": tuple([a % rank for a in node.attribute("axes")])}
