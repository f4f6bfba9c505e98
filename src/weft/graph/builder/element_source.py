"""Traces an element of a small integer vector to its source, through nodes that only select and concatenate elements.

Models take a shape apart and put it together again. That two sizes are the same element of one tensor shows in the formulas of
the nodes between: at that element, each is a read of one other element.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TypeAlias

import numpy as np

from weft.graph.core.graph import Node
from weft.graph.core.graph_values import Constant, Value
from weft.ir import Apply, Cast, Const, Expr, const, index, map_nodes, simplify, substitute
from weft.ir import Node as IrNode
from weft.te import Compute, Read, Tensor, reads_of

Source: TypeAlias = "tuple[Value, int] | int | Expr"
"""An element of a tensor, counted row by row; or its value, where that is known."""


def element_source(value: Value, element: int) -> Source:
    """Returns the earliest tensor that has element *element* of *value*, and which of its elements that is."""
    while True:
        if isinstance(value, Constant):
            return int(value.array.reshape(-1)[element])
        found = None if value.producer is None else _source(value.producer, value, element)
        if found is None:
            return value, element
        if not isinstance(found, tuple):
            return found
        value, element = found


def _source(node: Node, value: Value, element: int) -> Source | None:
    """Returns the element that the formula of *node* copies to an element of *value*; None where it computes it."""
    inputs: dict[Tensor, Value] = {}
    found = _formula_at(node, value, element, inputs)
    if found is None or isinstance(found, Const):
        return None if found is None else int(found.value)
    if isinstance(found, Read):
        return _place(found, inputs)
    return None if reads_of(found) else found


def _formula_at(node: Node, value: Value, element: int, inputs: dict[Tensor, Value]) -> Expr | None:
    """Returns the formula of one element of a value of *node*, and in *inputs* the values that it reads; None if it has none."""
    if node.operator.has_regions or value.static_shape is None or not value.dtype.is_int:
        return None
    given, outputs = node.operator.formulas([None if v is None else v.type for v in node.inputs], node.keywords)
    inputs.update({t: v for t, v in zip(given, node.inputs, strict=True) if t is not None and v is not None})
    op = outputs[value.index].op
    if not isinstance(op, Compute) or op.reduction is not None:
        return None
    at = [index(int(i)) for i in np.unravel_index(element, value.static_shape)]
    whole = op.values[outputs[value.index].index]
    return _resolved(substitute(whole, dict(zip(op.axes, at, strict=True))), inputs)


def _place(found: Read, inputs: Mapping[Tensor, Value]) -> tuple[Value, int] | None:
    """Returns the value that a formula reads, and which element of it; None where that is not known."""
    source = inputs.get(found.tensor)
    if source is None or not source.dtype.is_int or source.static_shape is None:
        return None
    place = _constant_indices(found, source.static_shape)
    if place is None:
        return None
    return source, int(np.ravel_multi_index(place, source.static_shape)) if place else 0


def _constant_indices(read: Read, shape: Sequence[int]) -> tuple[int, ...] | None:
    """Returns the indices of a read as numbers; None where one is none, or outside, as those of choices not taken may be."""
    place = tuple([int(i.value) for i in map(simplify, read.indices) if isinstance(i, Const)])
    is_inside = len(place) == len(shape) and all(0 <= i < n for i, n in zip(place, shape, strict=True))
    return place if is_inside else None


def _resolved(e: Expr, inputs: Mapping[Tensor, Value]) -> Expr:
    """Returns a formula with elements of constants as numbers, and without conversions of the result between integers."""

    def change(n: IrNode) -> IrNode | None:
        if isinstance(n, Apply) and n.fn == "watched":
            return n.args[0]
        source = inputs.get(n.tensor) if isinstance(n, Read) else None
        if not isinstance(n, Read) or not isinstance(source, Constant):
            return None
        place = _constant_indices(n, source.array.shape)
        return None if place is None else const(int(source.array[place]), n.dtype)

    found = simplify(map_nodes(e, change))
    while isinstance(found, Cast) and found.dtype.is_int and found.a.dtype.is_int:
        found = found.a
    return found
