"""Ranges of the integers in a graph, known without running it: the least and the greatest that each value can hold.

    _RULES = {"argmax": _along_axis, "clip": _clipped, ...}

One row an operator whose results are bounded by construction; one that only moves elements, by its formula, keeps their range.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Final

import numpy as np

from weft.cost import RANGE_DEPTH
from weft.graph.core.graph import Node
from weft.graph.core.graph_values import Constant, Value
from weft.graph.fusion.node_facts import facts_of
from weft.ir import ZERO, Const, Expr, index
from weft.ops import Limits, product


def known_range(v: Value, depth: int = RANGE_DEPTH) -> Limits | None:
    """Returns the least and the greatest integer that *v* can hold, which may depend on symbolic sizes; None if unknown."""
    if isinstance(v, Constant):
        return _extremes(v) if v.dtype.is_int and v.size else None
    node = v.producer
    if node is None or depth == 0 or not v.dtype.is_int:
        return _by_type(v)
    if node.op in _RULES:
        found = _RULES[node.op](node)
    elif node.op == "cast" and node.inputs[0] is not None:
        found = _if_it_fits(known_range(node.inputs[0], depth - 1), v)
    else:
        found = _of_all([node.inputs[i] for i in facts_of(node).moved or ()], depth - 1)
    return found if found is not None else _by_type(v)


def _extremes(c: Constant) -> Limits:
    return index(int(c.array.min())), index(int(c.array.max()))


def _by_type(v: Value) -> Limits | None:
    """Returns the range of a narrow type; that of a wider one says nothing of an index."""
    if not v.dtype.is_int or v.dtype.bits > 16:
        return None
    low, high = v.dtype.int_range
    return index(low), index(high)


def _of_all(moved: Sequence[Value | None], depth: int) -> Limits | None:
    """Returns the range of all elements of *moved*; None if one is unknown, or if they differ and one is symbolic."""
    found = [known_range(v, depth) for v in moved if v is not None]
    if not found or any(f is None for f in found):
        return None
    pairs = list(dict.fromkeys(f for f in found if f is not None))
    if len(pairs) == 1:
        return pairs[0]
    numbers = [(_number(low), _number(high)) for low, high in pairs]
    lows, highs = [low for low, _ in numbers if low is not None], [high for _, high in numbers if high is not None]
    if len(lows) < len(pairs) or len(highs) < len(pairs):
        return None
    return index(min(lows)), index(max(highs))


def _number(e: Expr) -> int | None:
    return int(e.value) if isinstance(e, Const) else None


def _if_it_fits(found: Limits | None, v: Value) -> Limits | None:
    """Returns the range *found* of the operand of a conversion to *v*, if the type of *v* holds all of it."""
    if found is None:
        return None
    low, high = map(_number, found)
    smallest, largest = v.dtype.int_range
    if low is None or high is None:
        return found if v.dtype.bits == 64 else None
    return found if smallest <= low and high <= largest else None


def _along_axis(node: Node) -> Limits | None:
    x = node.inputs[0]
    return None if x is None else (ZERO, x.shape[int(node.attribute("axis")) % x.rank] - 1)


def _in_flat(node: Node) -> Limits | None:
    x = node.inputs[0]
    return None if x is None else (ZERO, product(x.shape) - 1)


def _clipped(node: Node) -> Limits | None:
    """Returns the range between constant bounds."""
    ends = [v.array.item() for v in node.inputs[1:] if isinstance(v, Constant) and v.size == 1]
    return (index(int(ends[0])), index(int(ends[1]))) if len(ends) == 2 and ends[0] <= ends[1] else None


def _remainder(node: Node) -> Limits | None:
    """Returns the range of `a % n`, for a constant positive n."""
    n = node.inputs[1]
    if not isinstance(n, Constant) or not n.size or int(np.min(n.array)) < 1:
        return None
    return ZERO, index(int(np.max(n.array)) - 1)


_RULES: Final[dict[str, Callable[[Node], Limits | None]]] = {
    "argmax": _along_axis,
    "argmin": _along_axis,
    "argsort": _along_axis,
    "max_pool2d_indices": _in_flat,
    "nonzero_positions": _in_flat,
    "clip": _clipped,
    "floor_mod": _remainder,
}
