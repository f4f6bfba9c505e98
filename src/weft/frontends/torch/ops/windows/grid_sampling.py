"""Volumes sampled at the points of a grid; images are sampled by PyTorch's own decomposition."""

from __future__ import annotations

import math
from itertools import product
from typing import Final

from weft.frontends.torch.call import Call
from weft.frontends.torch.registry import translates
from weft.graph.builder import Operand, Results, static_sizes
from weft.support.dtypes import bool_, i64

_NEAREST: Final = 1
"""The number of PyTorch's mode that takes the nearest element; 0 interpolates."""

_BORDER, _REFLECTION = 1, 2
"""The numbers of its modes of padding, of which 0 is zeros."""


@translates("grid_sampler_3d")
def grid_sampler(c: Call) -> Results:
    """The elements of each volume [N, C, ...] at the points [N, ..., 3] of a grid, whose last coordinate is that of rows."""
    x, grid = c.tensor("input", 5), c.tensor("grid", 5)
    sizes = static_sizes(x.shape[2:])
    if sizes is None:
        c.fail(f"samples of {x!r}, of symbolic size, are not supported", "give it numbers in `shapes`")
    mode = c.integer("interpolation_mode")
    points = [_coordinate(c, grid, 2 - d, size) for d, size in enumerate(sizes)]
    if mode == _NEAREST:
        made = _elements(c, x, [c.add("round", p) for p in points], sizes)
    else:
        made = _interpolated(c, x, points, sizes)
    return c.reshape(made, [*x.shape[:2], *grid.shape[1:4]])


def _interpolated(c: Call, x: Operand, points: list[Operand], sizes: list[int]) -> Operand:
    """Returns the sum of the elements around each point, each as much as it is near."""
    one = c.scalar(1, x.dtype)
    below = [c.add("floor", p) for p in points]
    above = [c.add("sub", p, b) for p, b in zip(points, below, strict=True)]
    made: Operand | None = None
    for corner in product((0, 1), repeat=len(points)):
        at = [c.add("add", b, one) if k else b for b, k in zip(below, corner, strict=True)]
        weights = [w if k else c.add("sub", one, w) for w, k in zip(above, corner, strict=True)]
        weight = c.add("mul", c.add("mul", weights[0], weights[1]), weights[2])
        term = c.add("mul", _elements(c, x, at, sizes), c.reshape(weight, [x.shape[0], 1, weight.shape[1]]))
        made = term if made is None else c.add("add", made, term)
    assert made is not None
    return made


def _elements(c: Call, x: Operand, at: list[Operand], sizes: list[int]) -> Operand:
    """Returns the elements [N, C, P] of volumes at whole coordinates [N, P], and zeros outside of them."""
    zero = c.scalar(0, x.dtype)
    inside: Operand = c.scalar(True, bool_)
    place: Operand = c.scalar(0, i64)
    for p, size in zip(at, sizes, strict=True):
        last = c.scalar(size - 1, x.dtype)
        within = c.add("logical_and", c.add("less_equal", zero, p), c.add("less_equal", p, last))
        inside = c.add("logical_and", inside, within)
        row = c.cast(c.add("where", within, p, zero), i64)
        place = c.add("add", c.add("mul", place, c.scalar(size, i64)), row)
    batch, channels, count = x.shape[0], x.shape[1], place.shape[1]
    flat = c.reshape(x, [batch, channels, math.prod(sizes)])
    places = c.add("expand", c.reshape(place, [batch, 1, count]), shape=(batch, channels, count))
    return c.add("where", c.reshape(inside, [batch, 1, count]), c.add("gather_elements", flat, places, axis=2), zero)


def _coordinate(c: Call, grid: Operand, number: int, size: int) -> Operand:
    """Returns one coordinate of all points [N, P], from -1 to 1 in the grid, as one among *size* elements."""
    points = c.add("slice", grid, starts=(number,), ends=(number + 1,), axes=(4,), steps=(1,))
    points = c.reshape(points, [grid.shape[0], grid.shape[1] * grid.shape[2] * grid.shape[3]])
    aligned, padding = bool(c.value("align_corners")), c.integer("padding_mode")
    low, high = (0.0, size - 1.0) if aligned else (-0.5, size - 0.5)
    made = c.add("add", points, c.scalar(1, grid.dtype))
    made = c.add("add", c.add("mul", made, c.scalar((high - low) / 2, grid.dtype)), c.scalar(low, grid.dtype))
    if padding == _REFLECTION:
        made = _reflected(c, made, low, high)
    if padding in (_BORDER, _REFLECTION):
        made = c.add("minimum", c.add("maximum", made, c.scalar(0, grid.dtype)), c.scalar(size - 1, grid.dtype))
    return made


def _reflected(c: Call, x: Operand, low: float, high: float) -> Operand:
    """Returns numbers reflected at two others, as often as it takes for them to lie between."""
    if low == high:
        return c.add("mul", x, c.scalar(0, x.dtype))
    least, twice = (c.scalar(v, x.dtype) for v in (low, 2 * (high - low)))
    rest = c.add("floor_mod", c.add("sub", x, least), twice)
    return c.add("add", c.add("minimum", rest, c.add("sub", twice, rest)), least)
