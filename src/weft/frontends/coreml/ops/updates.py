"""Updates written, or combined with the elements there, at indices that are data."""

from __future__ import annotations

from typing import Final

from weft.frontends.coreml.call import Call
from weft.frontends.coreml.registry import translates
from weft.graph.builder import Builder, Operand
from weft.support.dtypes import i64

_MODES: Final = {"update": "none", "add": "add", "mul": "mul", "max": "max", "min": "min"}
_OPPOSITE: Final = {"sub": ("neg", "add"), "div": ("reciprocal", "mul")}


def combined(b: Builder, mode: str, updates: Operand) -> tuple[Operand, str]:
    """Returns updates, and the operator by which they are combined with the elements there."""
    if mode in _OPPOSITE:
        operator, mode = _OPPOSITE[mode]
        updates = b.add(operator, updates)
    if mode not in _MODES:
        b.fail(f"its mode {mode!r} is not supported", f"use one of {', '.join([*_MODES, *_OPPOSITE])}")
    return updates, _MODES[mode]


def _given(c: Call) -> tuple[Operand, Operand, Operand, str]:
    """Returns the tensor, the indices, the updates, and how they are combined."""
    data = c.operand("data")
    updates, reduction = combined(c, c.text("mode", "add"), c.cast(c.operand("updates"), data.dtype))
    return data, c.cast(c.operand("indices"), i64), updates, reduction


@translates("scatter")
def scatter(c: Call) -> Operand:
    """Slices along an axis."""
    data, indices, updates, reduction = _given(c)
    axis, n = c.axis_of(c.integer("axis", 0), data.rank), indices.rank
    first = [*range(axis, axis + n), *range(axis), *range(axis + n, updates.rank)]
    tuples = c.reshape(indices, [*indices.shape, 1])
    return c.add("scatter_nd", data, tuples, c.transpose(updates, first), reduction=reduction, axes=(axis,))


@translates("scatter_along_axis")
def scatter_along_axis(c: Call) -> Operand:
    """Elements at their place, but at the index along an axis."""
    data, indices, updates, reduction = _given(c)
    axis = c.axis_of(c.integer("axis", 0), data.rank)
    return c.add("scatter_elements", data, indices, updates, axis=axis, reduction=reduction)


@translates("scatter_nd")
def scatter_nd(c: Call) -> Operand:
    """Slices at tuples of indices."""
    data, indices, updates, reduction = _given(c)
    return c.add("scatter_nd", data, indices, updates, reduction=reduction)
