"""Appends: concatenations of a value and tensors behind it, along a dimension that only dimensions of one element are before."""

from __future__ import annotations

from weft.graph.core.graph_values import Value
from weft.ir import ONE, ZERO, Expr


def appended_rows(made: Value, taken: Value) -> tuple[int, list[Value]] | None:
    """Returns the axis along which *made* is *taken* with tensors behind it, and these; None where it is made otherwise.

    Elements are in row-major order, so that only dimensions of one element may be before the axis.
    """
    rows: list[Value] = []
    axes: set[int] = set()
    while made is not taken:
        node = made.producer
        if node is None or node.op != "concat":
            return None
        first, *others = [v for v in node.inputs if v is not None]
        axes.add(node.attribute("axis") % made.rank)
        rows[:0] = others
        made = first
    if len(axes) != 1:
        return None
    axis = axes.pop()
    return (axis, rows) if all(s is ONE for s in taken.shape[:axis]) else None


def without_rows(v: Value, axis: int) -> tuple[int, ...] | None:
    """Returns the shape of *v* with no elements along *axis*; None where another size is symbolic."""
    shape: list[Expr] = list(v.shape)
    shape[axis] = ZERO
    return Value("", type(v.type)(tuple(shape), v.dtype)).static_shape
