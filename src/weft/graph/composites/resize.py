"""Resampling of images and sequences, one axis after another, by the tables of `sampling`."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Final

import numpy as np

from weft.cost import LARGEST_SAMPLED_DIMENSION
from weft.graph.builder.builder import Builder
from weft.graph.builder.constants import CompileTimeConstant
from weft.graph.builder.partial_evaluator import Operand
from weft.graph.composites.run_time.late_resize import COORDINATES as LATE
from weft.graph.composites.run_time.late_resize import late_axis, resample_late
from weft.graph.composites.sampling import Axis, Filter, Floats, coordinates_of, nearest_of, taps_of
from weft.ir import Const, Expr, ExprLike, as_expr
from weft.ops import COORDINATES, same_size, simplify_size
from weft.support.dtypes import f32, f64
from weft.te import is_narrow

MOVING: Final = ("tf_crop_and_resize", "offset_corners")
"""Coordinates by which the elements of a dimension that keeps its size may be others."""

_LINEAR: Final = ("half_pixel", "tf_half_pixel_for_nn", "asymmetric", "asymmetric_in_single")
"""Coordinates that are the same for all sizes."""

_EXACT: Final = {
    "tf_half_pixel_for_nn": ("half_pixel", "round_prefer_ceil"),
    "asymmetric_in_single": ("asymmetric", "floor"),
}
"""Coordinates in single precision, and how those of the same places in exact arithmetic are rounded to the nearest."""

_NUMBER: Final = 'give it a number: shapes={"x": (1, 3, 224, 224)}'

WHOLE: Final = (0.0, 1.0)
"""The sampled part of a dimension that is not cropped: all of it."""


def scaled_size(b: Builder, size: Expr, scale: float) -> Expr:
    """Returns a size scaled and rounded down; raises `ModelError` for a symbolic one unless the scale is an integer."""
    if isinstance(size, Const):
        return as_expr(math.floor(int(size.value) * scale))
    if not scale.is_integer():
        b.fail(f"a symbolic size scaled by {scale} is not supported", _NUMBER)
    return simplify_size(size * int(scale))


def resample_axis(
    b: Builder,
    x: Operand,
    d: int,
    size: ExprLike,
    how: Filter,
    scale: float | None = None,
    part: tuple[float, float] = WHOLE,
    extrapolation: float = 0.0,
) -> Operand:
    """Resamples dimension *d* to *size* elements.

    *scale* is the ratio of coordinates where it differs from that of the sizes. With the coordinates "tf_crop_and_resize" only
    *part* of the dimension (as fractions of it) is sampled, and elements outside of the dimension are *extrapolation*. Raises
    `ModelError` for an empty dimension, unknown coordinates, and modes that need sizes that are symbolic.
    """
    old, new = x.shape[d], as_expr(size)
    if same_size(old, new) and scale in (None, 1.0) and how.coordinates not in MOVING:
        return x
    times = _repeats(old, new, how)
    if times is not None and scale in (None, float(times)):
        return b.add("repeat", x, axis=d, times=times)
    if not isinstance(old, Const) or not isinstance(new, Const):
        return _resized(b, x, d, new, how, scale)
    if not old.value:
        b.fail(f"dimension {d} of {x!r} can't be resampled: it is empty")
    axis = Axis(int(old.value), int(new.value), scale or int(new.value) / int(old.value), *part)
    return _sampled(b, x, d, axis, how, extrapolation)


def _sampled(b: Builder, x: Operand, d: int, axis: Axis, how: Filter, extrapolation: float) -> Operand:
    """Resamples dimension *d* of known size."""
    longest = max(axis.resized, axis.size if how.antialias else 0)  # each element is averaged over, then
    _check_length(b, x, d, longest)
    at = coordinates_of(axis, how.coordinates)
    if at is None:
        b.fail(f"there is no coordinate_transformation_mode {how.coordinates!r}")
    y = _by_table(b, x, d, axis, at, how)
    if how.coordinates != "tf_crop_and_resize":
        return y
    outside = ((at < 0) | (at > axis.size - 1)).reshape([-1 if k == d else 1 for k in range(x.rank)])
    return b.add("where", CompileTimeConstant(outside), b.scalar(extrapolation, x.dtype), y)


def _check_length(b: Builder, x: Operand, d: int, longest: int) -> None:
    """Refuses to make tables for so many elements."""
    if longest > LARGEST_SAMPLED_DIMENSION:
        b.fail(
            f"resampling dimension {d} of {x!r}, along {longest} elements, is not supported; "
            f"{LARGEST_SAMPLED_DIMENSION} are the most"
        )


def area_axis(b: Builder, x: Operand, d: int, size: int) -> Operand:
    """Returns the means of *size* equal stretches of dimension *d*, in which elements count by the part that lies inside."""
    old = x.shape[d]
    if not isinstance(old, Const) or not old.value:
        b.fail(f"dimension {d} of {x!r}, of symbolic size, is not averaged over", "give it a number in `shapes`")
    _check_length(b, x, d, max(int(old.value), size))
    step = int(old.value) / size
    begins = np.arange(size) * step
    first, last = np.floor(begins), np.ceil(begins + step)
    taps = first[:, None] + np.arange(int((last - first).max()))
    low, high = np.maximum(taps, begins[:, None]), np.minimum(taps + 1, begins[:, None] + step)
    weights = np.maximum(high - low, 0) / step
    places = np.minimum(taps, int(old.value) - 1).astype(np.int64)
    tables = CompileTimeConstant(places), CompileTimeConstant(weights.astype(np.float32))
    return b.add("resample", b.cast(x, f32), *tables, axis=d)


def _by_table(b: Builder, x: Operand, d: int, axis: Axis, at: Floats, how: Filter) -> Operand:
    """Samples dimension *d* at the coordinates *at*."""
    if how.mode == "nearest":
        return b.add("gather", x, CompileTimeConstant(nearest_of(axis, at, how.nearest)), axis=d)
    taps, weights = taps_of(axis, at, how)
    wide = x if x.dtype.is_float else b.cast(x, f32)
    exact = f32 if is_narrow(wide.dtype) else wide.dtype
    tables = CompileTimeConstant(taps), CompileTimeConstant(weights.astype(exact.numpy))
    return b.cast(b.add("resample", wide, *tables, axis=d), x.dtype)


def _resized(b: Builder, x: Operand, d: int, size: Expr, how: Filter, scale: float | None) -> Operand:
    """Resamples dimension *d* where a size is symbolic: tables that are needed are computed in each call."""
    if scale is not None and not (scale.is_integer() and same_size(size, x.shape[d] * int(scale))):
        b.fail(f"resampling dimension {d} of {x!r}, of symbolic size, by a scale of {scale} is not supported", _NUMBER)
    if how.coordinates in _EXACT:
        coordinates, nearest = _EXACT[how.coordinates]
        how = replace(how, coordinates=coordinates, nearest=nearest)
    if how.mode == "cubic" and not how.antialias and how.coordinates in LATE and how.coordinates not in MOVING:
        ends = (b.scalar(0.0, f64), b.scalar(1.0, f64))
        return resample_late(b, x, d, late_axis(b, x.shape[d], size, None, ends), how, 0.0)
    supported = how.mode in ("nearest", "linear") and how.coordinates in COORDINATES and not how.antialias
    if not supported or how.exclude_outside:
        b.fail(
            f"resampling dimension {d} of {x!r}, of symbolic size, by mode {how.mode}, {how.coordinates} is not supported",
            _NUMBER,
        )
    return b.add("resize", x, axis=d, size=size, mode=how.mode, coordinates=how.coordinates, nearest=how.nearest)


def _repeats(old: Expr, new: Expr, how: Filter) -> int | None:
    """Returns how often each element is repeated, if nearest interpolation is only a repetition here."""
    times = simplify_size(new // old)
    if how.mode != "nearest" or not isinstance(times, Const) or not same_size(old * times, new):
        return None
    k = int(times.value)
    if 4 * k > LARGEST_SAMPLED_DIMENSION:
        return None
    probe = Axis(
        4, 4 * k, float(k)
    )  # coordinates are linear, so a repetition that holds for four elements holds for any number
    at = coordinates_of(probe, how.coordinates) if how.coordinates in _LINEAR else None
    if at is None:
        return None
    return k if np.array_equal(nearest_of(probe, at, how.nearest), np.arange(4 * k) // k) else None
