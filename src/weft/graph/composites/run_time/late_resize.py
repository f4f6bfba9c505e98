"""Resampling to sizes, or by scales, that only a run tells: the tables of `sampling`, as operators of the graph compute them."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Final

from weft.graph.builder.builder import Builder
from weft.graph.builder.partial_evaluator import Operand
from weft.graph.composites.run_time.number import Number
from weft.graph.composites.sampling import Filter
from weft.ir import ExprLike
from weft.support.dtypes import f32, f64, i64
from weft.te import is_narrow


@dataclass(frozen=True)
class LateAxis:
    """One axis to resample, as `sampling.Axis`, of numbers that only a run tells; *at* numbers the elements of its result."""

    at: Number
    size: Number
    resized: Number
    scale: Number
    start: Number
    end: Number

    @property
    def last(self) -> Number:
        """The coordinate of the last element."""
        return self.size - 1.0

    @property
    def exact(self) -> Number:
        """The size of the result before it is rounded down."""
        return self.scale * self.size

    def spread(self, span: Number, alone: Number) -> Number:
        """Returns coordinates of which the first is 0 and the last *span*; *alone* where there is but one."""
        steps = self.exact - 1.0
        is_one = steps.with_("equal", 0.0)
        return Number(self.at.b, self.at.b.add("where", is_one.x, alone.x, (self.at * span / steps.or_one()).x))


def _half(a: LateAxis) -> Number:
    return (a.at + 0.5) / a.scale - 0.5


def _crop(a: LateAxis) -> Number:
    span = (a.end - a.start) * a.last
    return a.start * a.last + a.spread(span, span / 2.0 + a.at)


COORDINATES: Final[Mapping[str, Callable[[LateAxis], Number]]] = {
    "half_pixel": _half,
    "half_pixel_symmetric": lambda a: _half(a) + a.size / 2.0 - a.size / 2.0 * a.resized / a.exact,
    "pytorch_half_pixel": lambda a: a.resized.at_most(1.0, a.at, _half(a)),
    "align_corners": lambda a: a.spread(a.last, a.at),
    "asymmetric": lambda a: a.at / a.scale,
    "tf_crop_and_resize": _crop,
}
"""The coordinates of the elements of a result in the input, by the mode, as `sampling.coordinates_of` has them."""


def _nearest(x: Number, mode: str) -> Number:
    """Returns coordinates rounded by a mode, as `sampling.NEAREST` has it."""
    if mode == "round_prefer_floor":
        return (x - 0.5).of("ceil")
    return (x + 0.5).of("floor") if mode == "round_prefer_ceil" else x.of(mode)


def late_axis(
    b: Builder, size: ExprLike, resized: ExprLike, scale: Operand | None, part: tuple[Operand, Operand]
) -> LateAxis:
    """Returns an axis; *scale* is a double, None for the ratio of the sizes, and *part* two fractions of the dimension."""
    old, new = (Number(b, b.cast(b.size(s), f64)) for s in (size, resized))
    at = Number(b, b.cast(b.add("range", start=0, size=resized, step=1), f64))
    start, end = (Number(b, b.reshape(b.cast(p, f64), ())) for p in part)
    return LateAxis(at, old, new, new / old if scale is None else Number(b, b.reshape(scale, ())), start, end)


def resample_late(b: Builder, x: Operand, d: int, axis: LateAxis, how: Filter, extrapolation: float) -> Operand:
    """Resamples dimension *d* of *x*, as `resize.resample_axis` does; raises `ModelError` for unknown coordinates."""
    if how.coordinates not in COORDINATES:
        b.fail(f"coordinate_transformation_mode {how.coordinates!r} by sizes that only a run tells is not supported")
    at = COORDINATES[how.coordinates](axis)
    if how.mode == "nearest":
        made = b.add("gather", x, _inside(_nearest(at, how.nearest), axis), axis=d)
    else:
        made = _weighted(b, x, d, axis, at, how)
    if how.coordinates != "tf_crop_and_resize":
        return made
    outside = b.add("logical_or", at.with_("less", 0.0).x, axis.last.with_("less", at).x)
    outside = b.reshape(outside, [axis.at.x.shape[0] if k == d else 1 for k in range(x.rank)])
    return b.add("where", outside, b.scalar(extrapolation, x.dtype), made)


def _inside(at: Number, axis: LateAxis) -> Operand:
    """Returns coordinates as indices, moved inside of the dimension."""
    b = at.b
    inside = b.add("minimum", b.add("maximum", at.x, b.scalar(0.0, f64)), axis.last.x)
    return b.cast(inside, i64)


def _weighted(b: Builder, x: Operand, d: int, axis: LateAxis, at: Number, how: Filter) -> Operand:
    """Returns sums of the elements around each coordinate, times the weights that the filter gives them."""
    one = Number(b, b.scalar(1.0, f64))
    reach = 1.0 if how.mode == "linear" else 2.0
    shrink = Number(b, b.add("minimum", axis.scale.x, one.x)) if how.antialias else one
    first = (Number(b, b.scalar(-reach, f64)) / shrink).of("floor") + 1.0
    count = b.late_number(
        b.cast((Number(b, b.scalar(2.0, f64)) - first * 2.0).x, i64), "taps", "the number of taps", least=1
    )
    offsets = Number(b, b.cast(b.add("range", start=0, size=count, step=1), f64)) + first
    around = at.of("floor").as_column() + offsets
    distance = (around - at.as_column()).of("abs") * shrink
    weights = _linear(distance) if how.mode == "linear" else _cubic(distance, how.cubic)
    if how.exclude_outside:
        zero = Number(b, b.scalar(0.0, f64))
        weights = around.at_most(-1.0, zero, around.at_most(axis.last, weights, zero))
    if how.exclude_outside or how.antialias:
        weights = weights / Number(b, b.add("reduce_sum", weights.x, axes=(1,), keepdims=True))
    wide = x if x.dtype.is_float else b.cast(x, f32)
    table = b.cast(weights.x, f32 if is_narrow(wide.dtype) else wide.dtype)
    return b.cast(b.add("resample", wide, _inside(around, axis), table, axis=d), x.dtype)


def _linear(d: Number) -> Number:
    zero = Number(d.b, d.b.scalar(0.0, f64))
    return d.at_most(1.0, Number(d.b, d.b.scalar(1.0, f64)) - d, zero)


def _cubic(d: Number, a: float) -> Number:
    near = ((d * (a + 2) - (a + 3)) * d * d) + 1.0
    far = ((d * a - 5 * a) * d + 8 * a) * d - 4 * a
    return d.at_most(1.0, near, d.at_most(2.0, far, Number(d.b, d.b.scalar(0.0, f64))))
