"""Resampling: Resize and Upsample, one axis after another."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, Final

import numpy as np

from weft.frontends.onnx.call import Call, Operand, Results
from weft.frontends.onnx.known import Known
from weft.frontends.onnx.registry import translates
from weft.frontends.onnx.sampling import NEAREST, Axis, Filter, coordinates_of, nearest_of, taps_of
from weft.graph.graph import UNFIT
from weft.ir.expr import Const, Expr, ExprLike, as_expr
from weft.ops.sample import COORDINATES
from weft.ops.shapes import same_size, simplify_size
from weft.support.dtypes import f32
from weft.te import is_narrow

LARGEST_TABLE: Final = 1 << 22
"""Elements of a dimension up to which it is worked out while importing where each is sampled."""


@translates("Upsample")
def upsample(c: Call) -> Results:
    """Resize as it was before operator set 10."""
    x = c.input(0)
    scales = c.attributes["scales"] if c.opset < 9 else c.numbers(1, "the scales").tolist()
    how = Filter(mode=c.text("mode", "nearest"), coordinates="asymmetric", nearest="floor")
    for d, s in enumerate(scales):
        x = _resampled(c, x, d, _scaled(c, x.shape[d], float(s)), float(s), how, (0.0, 1.0))
    return x


@translates("Resize", limits="cubic interpolation and antialiasing along an axis of symbolic size")
def resize(c: Call) -> Results:
    """Resampling by nearest, linear or cubic interpolation, to sizes or by scales."""
    x = c.input(0)
    axes = c.ints("axes") or list(range(x.rank))
    axes = [c.axis_of(a, x.rank) for a in axes]
    how = _filter(c)
    given = 1 if c.opset < 11 else 2
    scales: list[float | None]
    if c.has(given) and c.input(given).shape != (as_expr(0),):
        factors = [float(s) for s in c.numbers(given, "the scales")]
        _check_count(c, "scales", len(factors), len(axes))
        sizes: list[ExprLike] = [_scaled(c, x.shape[d], s) for d, s in zip(axes, factors, strict=True)]
        scales = list(factors)
    else:
        wanted = c.sizes(3, "the sizes")
        _check_count(c, "sizes", len(wanted), len(axes))
        sizes = _kept_aspect(c, [x.shape[d] for d in axes], wanted)
        scales = [None] * len(axes)
    crops = how.coordinates == "tf_crop_and_resize"
    roi = [float(v) for v in c.numbers(1, "the region of interest")] if crops and c.has(1) else []
    if roi:
        _check_count(c, "ends of a region", len(roi), 2 * len(axes))
    for n, d in enumerate(axes):
        part = (roi[n], roi[len(roi) // 2 + n]) if roi else (0.0, 1.0)
        x = _resampled(c, x, d, sizes[n], scales[n], how, part)
    return x


def _check_count(c: Call, what: str, found: int, wanted: int) -> None:
    if found != wanted:
        c.fail(f"it has {found} {what}, and its dimensions take {wanted}", UNFIT)


def _filter(c: Call) -> Filter:
    if c.opset < 11:
        return Filter(mode=c.text("mode", "nearest"), coordinates="asymmetric", nearest="floor")
    how = Filter(
        mode=c.text("mode", "nearest"),
        coordinates=c.text("coordinate_transformation_mode", "half_pixel"),
        nearest=c.text("nearest_mode", "round_prefer_floor"),
        cubic=c.number("cubic_coeff_a", -0.75),
        antialias=c.flag("antialias", False),
        exclude_outside=c.flag("exclude_outside", False),
    )
    if how.nearest not in NEAREST:
        c.fail(f"there is no nearest_mode {how.nearest!r}", f"use one of {', '.join(NEAREST)}")
    return how


def _scaled(c: Call, size: Expr, scale: float) -> Expr:
    """Returns a size scaled and rounded down; a symbolic one only by an integer."""
    if isinstance(size, Const):
        return as_expr(math.floor(int(size.value) * scale))
    if not scale.is_integer():
        c.fail(
            f"a symbolic size scaled by {scale} is not supported", 'give it a number: shapes={"x": (1, 3, 224, 224)}'
        )
    return simplify_size(size * int(scale))


def _kept_aspect(c: Call, sizes: Sequence[Expr], wanted: list[Any]) -> list[ExprLike]:
    """Returns the sizes wanted, made to keep the proportions where the policy says so."""
    policy = c.text("keep_aspect_ratio_policy", "stretch")
    if policy == "stretch":
        return list(wanted)
    numbers = [(int(s.value), int(w)) for s, w in zip(sizes, wanted, strict=True) if isinstance(s, Const)]
    if len(numbers) != len(sizes):
        c.fail(f"keep_aspect_ratio_policy={policy} with a symbolic size is not supported")
    if 0 in (s for s, _ in numbers):
        c.fail(f"an image of shape {tuple(s for s, _ in numbers)} can't be resized: it is empty")
    ratios = [w / s for s, w in numbers]
    scale = min(ratios) if policy == "not_larger" else max(ratios)
    return [math.floor(s * scale + 0.5) for s, _ in numbers]


def _resampled(
    c: Call, x: Operand, d: int, size: ExprLike, scale: float | None, how: Filter, part: tuple[float, float]
) -> Operand:
    """Resamples dimension *d* to *size*."""
    old, new = x.shape[d], as_expr(size)
    crops = how.coordinates == "tf_crop_and_resize"
    if same_size(old, new) and scale in (None, 1.0) and not crops:
        return x
    times = _repeats(old, new, how)
    if times is not None:
        return _repeated(c, x, d, times)
    if not isinstance(old, Const) or not isinstance(new, Const):
        return _resized(c, x, d, new, how)
    if not old.value:
        c.fail(f"dimension {d} of {x!r} can't be resampled: it is empty")
    longest = max(int(new.value), int(old.value) if how.antialias else 0)  # each element is averaged over, then
    if longest > LARGEST_TABLE:
        c.fail(
            f"resampling dimension {d} of {x!r}, along {longest} elements, is not supported; {LARGEST_TABLE} are the most"
        )
    a = Axis(int(old.value), int(new.value), scale or int(new.value) / int(old.value), *part)
    at = coordinates_of(a, how.coordinates)
    if at is None:
        c.fail(f"there is no coordinate_transformation_mode {how.coordinates!r}")
    if how.mode == "nearest":
        y = c.add("gather", x, Known(nearest_of(a, at, how.nearest)), axis=d)
    else:
        taps, weights = taps_of(a, at, how)
        wide = x if x.dtype.is_float else c.cast(x, f32)
        exact = f32 if is_narrow(wide.dtype) else wide.dtype
        y = c.cast(c.add("resample", wide, Known(taps), Known(weights.astype(exact.numpy)), axis=d), x.dtype)
    if not crops:
        return y
    outside = ((at < 0) | (at > a.size - 1)).reshape([-1 if k == d else 1 for k in range(x.rank)])
    return c.add("where", Known(outside), c.scalar(c.number("extrapolation_value", 0.0), x.dtype), y)


def _resized(c: Call, x: Operand, d: int, size: Expr, how: Filter) -> Operand:
    """Resamples dimension *d* where a size is symbolic, so that there can be no tables."""
    supported = how.mode in ("nearest", "linear") and how.coordinates in COORDINATES and not how.antialias
    if not supported or how.exclude_outside:
        c.fail(
            f"resampling dimension {d} of {x!r}, of symbolic size, by mode {how.mode}, {how.coordinates} is not supported",
            'give it a number: shapes={"x": (1, 3, 224, 224)}',
        )
    return c.add("resize", x, axis=d, size=size, mode=how.mode, coordinates=how.coordinates, nearest=how.nearest)


def _repeats(old: Expr, new: Expr, how: Filter) -> int | None:
    """Returns how often each element is repeated, where nearest interpolation comes to no more than that."""
    times = simplify_size(new // old)
    if how.mode != "nearest" or not isinstance(times, Const) or not same_size(old * times, new):
        return None
    k = int(times.value)
    probe = Axis(4, 4 * k, float(k))  # what is true of four elements is true of any number: the coordinates are linear
    at = coordinates_of(probe, how.coordinates) if how.coordinates in ("half_pixel", "asymmetric") else None
    if at is None:
        return None
    return k if np.array_equal(nearest_of(probe, at, how.nearest), np.arange(4 * k) // k) else None


def _repeated(c: Call, x: Operand, d: int, times: int) -> Operand:
    """Repeats each element of dimension *d* *times* times."""
    shape = list(x.shape)
    tall = c.reshape(x, [*shape[: d + 1], 1, *shape[d + 1 :]])
    wide = c.add("expand", tall, shape=(*shape[: d + 1], times, *shape[d + 1 :]))
    return c.reshape(wide, [*shape[:d], shape[d] * times, *shape[d + 1 :]])


_MODES: Final = {"bilinear": "linear", "bicubic": "cubic"}
"""How operator sets before 20 called the modes of GridSample."""


@translates("GridSample")
def grid_sample(c: Call) -> Results:
    """Samples at places that a grid gives."""
    mode = c.text("mode", "linear")
    return c.add(
        "grid_sample", c.input(0), c.input(1), mode=_MODES.get(mode, mode), padding=c.text("padding_mode", "zeros"),
        align_corners=c.flag("align_corners", False),
    )  # fmt: skip
