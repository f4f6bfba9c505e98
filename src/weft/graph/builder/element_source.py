"""Where an element of a small vector of integers comes from: through nodes that only choose and put together elements.

Models take a shape apart and put it together again. That two sizes are the same element of one tensor shows here.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final, TypeAlias

import numpy as np

from weft.graph.core.graph import Constant, Node, Value
from weft.ir import Const, Expr

Source: TypeAlias = "tuple[Value, int] | int | Expr"
"""An element of a tensor, counted row by row; or what it is, where that is known."""


def element_source(value: Value, element: int) -> Source:
    """Returns the earliest tensor that has element *element* of *value*, and which of its elements that is."""
    while True:
        if isinstance(value, Constant):
            return int(value.array.reshape(-1)[element])
        node = value.producer
        step = _STEPS.get(node.op) if node is not None and value.dtype.is_int else None
        found = step(node, value, element) if step is not None and node is not None else None
        if found is None:
            return value, element
        if not isinstance(found, tuple):
            return found
        value, element = found


def _same(node: Node, value: Value, element: int) -> Source | None:
    x = node.inputs[0]
    return (x, element) if x is not None and x.dtype.is_int else None


def _gathered(node: Node, value: Value, element: int) -> Source | None:
    x, indices = node.inputs
    if x is None or x.rank != 1 or x.static_shape is None or not isinstance(indices, Constant):
        return None
    return x, int(indices.array.reshape(-1)[element]) % x.static_shape[0]


def _sliced(node: Node, value: Value, element: int) -> Source | None:
    x = node.inputs[0]
    if x is None or x.rank != 1 or x.static_shape is None:
        return None
    starts, ends, steps = (node.attribute(name) for name in ("starts", "ends", "steps"))
    if not all(isinstance(e, int) for e in (*starts, *ends)):
        return None
    chosen = np.arange(x.static_shape[0])[slice(starts[0], ends[0], (steps or [1])[0])]
    return x, int(chosen[element])


def _piece(node: Node, value: Value, element: int) -> Source | None:
    x, sizes = node.inputs[0], node.attribute("sizes")
    if x is None or x.rank != 1 or not all(isinstance(s, int) for s in sizes):
        return None
    return x, sum(sizes[: value.index]) + element


def _joined(node: Node, value: Value, element: int) -> Source | None:
    for x in node.inputs:
        if x is None or x.rank != 1 or x.static_shape is None:
            return None
        if element < x.static_shape[0]:
            return x, element
        element -= x.static_shape[0]
    return None


def _known(node: Node, value: Value, element: int) -> Source | None:
    size = node.attribute("sizes")[element]
    return int(size.value) if isinstance(size, Const) else size


_STEPS: Final[dict[str, Callable[[Node, Value, int], Source | None]]] = {
    "cast": _same,
    "concat": _joined,
    "gather": _gathered,
    "identity": _same,
    "reshape": _same,
    "sizes": _known,
    "slice": _sliced,
    "split": _piece,
}
