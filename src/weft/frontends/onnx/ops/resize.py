"""Resampling: Resize and Upsample, one axis after another; regions of images."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, Final

from weft.frontends.onnx.call import Call, Operand, Results
from weft.frontends.onnx.registry import translates
from weft.graph import UNFIT
from weft.graph.builder import static_sizes
from weft.graph.composites import affine_grid as grids
from weft.graph.composites.resize import WHOLE, resample_axis, scaled_size
from weft.graph.composites.run_time.late_resize import late_axis, resample_late
from weft.graph.composites.sampling import NEAREST, Filter
from weft.graph.composites.sequences import element
from weft.ir import INDEX, Const, Expr, ExprLike, as_expr, eq
from weft.ops import same_size
from weft.support.dtypes import f64, i64

HALF_PIXELS: Final = 16
"""The operator set since which the regions of RoiAlign are moved by half an element, unless it says otherwise."""


@translates("Upsample")
def upsample(c: Call) -> Results:
    """Resize as it was before operator set 10."""
    x = c.input(0)
    if c.opset >= 9 and not c.is_known(1):
        how = Filter(mode=c.text("mode", "nearest"), coordinates="asymmetric", nearest="floor")
        return _resize_late(c, x, range(x.rank), how, c.input(1))
    scales = c.attributes["scales"] if c.opset < 9 else c.numbers(1, "the scales").tolist()
    how = Filter(mode=c.text("mode", "nearest"), coordinates="asymmetric", nearest="floor")
    for d, s in enumerate(scales):
        x = resample_axis(c, x, d, scaled_size(c, x.shape[d], float(s)), how, float(s))
    return x


@translates("Resize", limits="antialiasing along an axis of symbolic size")
def resize(c: Call) -> Results:
    """Resampling by nearest, linear or cubic interpolation, to sizes or by scales."""
    x = c.input(0)
    axes = c.ints("axes") or list(range(x.rank))
    axes = [c.axis_of(a, x.rank) for a in axes]
    how = _filter(c)
    at = _scales_input(c)
    crops = how.coordinates == "tf_crop_and_resize"
    if not c.is_known(3 if at is None else at) or (crops and not c.is_known(1)):
        return _resize_late(c, x, axes, how, None if at is None else c.input(at))
    sizes, scales = _known_sizes(c, [x.shape[d] for d in axes], at)
    roi = [float(v) for v in c.numbers(1, "the region of interest")] if crops and c.has(1) else []
    if roi:
        _check_count(c, "ends of a region", [len(roi)], [2 * len(axes)])
    extrapolation = c.number("extrapolation_value", 0.0)
    for n, d in enumerate(axes):
        part = (roi[n], roi[len(roi) // 2 + n]) if roi else WHOLE
        x = resample_axis(c, x, d, sizes[n], how, scales[n], part, extrapolation)
    return x


def _scales_input(c: Call) -> int | None:
    """Returns which input holds the scales; None where sizes are given."""
    i = 1 if c.opset < 11 else 2
    return i if c.has(i) and c.input(i).shape != (as_expr(0),) else None


def _known_sizes(c: Call, own: Sequence[Expr], at: int | None) -> tuple[list[ExprLike], list[float] | list[None]]:
    """Returns the sizes to which dimensions of sizes *own* are resampled, and the scales of input *at*, if that has them."""
    if at is None:
        wanted = c.sizes(3, "the sizes")
        _check_count(c, "sizes", [len(wanted)], [len(own)])
        return _kept_aspect(c, own, wanted), [None] * len(own)
    factors = [float(s) for s in c.numbers(at, "the scales")]
    _check_count(c, "scales", [len(factors)], [len(own)])
    return [scaled_size(c, n, s) for n, s in zip(own, factors, strict=True)], factors


def _resize_late(c: Call, x: Operand, axes: Sequence[int], how: Filter, scales: Operand | None) -> Operand:
    """Resamples by *scales*, or to sizes for None, that are known only when the model runs."""
    count = len(axes)
    old = c.cast(c.vector([x.shape[d] for d in axes]), f64)
    if scales is not None:
        _check_count(c, "scales", static_sizes(scales.shape) or [], [count])
        scales = c.cast(scales, f64)
        wanted = c.add("floor", c.add("mul", old, scales))
    else:
        _check_count(c, "sizes", static_sizes(c.input(3).shape) or [], [count])
        wanted = _kept_aspect_late(c, old, c.cast(c.input(3), f64))
    sizes = c.late_sizes(c.cast(wanted, i64), "size", "a size of its result")
    part = _roi_late(c, count) if how.coordinates == "tf_crop_and_resize" else None
    extrapolation = c.number("extrapolation_value", 0.0)
    for n, (d, size) in enumerate(zip(axes, sizes, strict=True)):
        scale = None if scales is None else element(c, scales, 0, n)
        start, end = (
            c.scalar(v, f64) if part is None else element(c, part, 0, n + k * count) for k, v in enumerate(WHOLE)
        )
        axis = late_axis(c, x.shape[d], size, scale, (start, end))
        x = resample_late(c, x, d, axis, how, extrapolation)
    return x


def _roi_late(c: Call, count: int) -> Operand | None:
    """Returns the ends of the region that is sampled, as doubles; None for all of the image."""
    if not c.has(1) or c.input(1).shape == (as_expr(0),):
        return None
    _check_count(c, "ends of a region", static_sizes(c.input(1).shape) or [], [2 * count])
    return c.cast(c.input(1), f64)


def _kept_aspect_late(c: Call, old: Operand, wanted: Operand) -> Operand:
    """Returns the sizes wanted, made to keep the proportions where the policy says so."""
    policy = c.text("keep_aspect_ratio_policy", "stretch")
    if policy == "stretch":
        return wanted
    choose = "reduce_min" if policy == "not_larger" else "reduce_max"
    scale = c.add(choose, c.add("div", wanted, old), axes=(0,), keepdims=True)
    return c.add("floor", c.add("add", c.add("mul", old, scale), c.scalar(0.5, f64)))


def _check_count(c: Call, what: str, found: list[int], wanted: list[int]) -> None:
    """Raises `ModelError` unless a vector of the shape *found* (none for a symbolic one) is of the shape *wanted*."""
    if found != wanted:
        told = ", ".join(map(str, found)) or "an unknown number of"
        c.fail(f"it has {told} {what}, and its dimensions take {wanted[0]}", UNFIT)


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
    if how.mode not in ("nearest", "linear", "cubic"):
        c.fail(f"there is no mode {how.mode!r}", "use one of nearest, linear, cubic")
    return how


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


_MODES: Final = {"bilinear": "linear", "bicubic": "cubic"}
"""How operator sets before 20 called the modes of GridSample."""


@translates("GridSample")
def grid_sample(c: Call) -> Results:
    """Samples at places that a grid gives."""
    mode = c.text("mode", "linear")
    return c.add(
        "grid_sample",
        c.input(0),
        c.input(1),
        mode=_MODES.get(mode, mode),
        padding=c.text("padding_mode", "zeros"),
        align_corners=c.flag("align_corners", False),
    )


@translates("AffineGrid")
def affine_grid(c: Call) -> Results:
    """The grid by which `GridSample` moves images by affine maps."""
    theta = c.ranked(0, 3, "the maps")
    batch, _, *sizes = c.late_sizes(c.input(1), "size", "a size of the images", least=1)
    count = as_expr(batch, INDEX)
    if static_sizes(theta.shape[1:]) != [len(sizes), len(sizes) + 1]:
        c.fail(f"{theta!r} has no maps for images of {len(sizes)} dimensions", UNFIT)
    if not same_size(theta.shape[0], count):
        c.require(eq(theta.shape[0], count), "its maps are {0}, and its images {1}", theta.shape[0], count)
    return grids.affine_grid(c, theta, sizes, align_corners=c.flag("align_corners", False))


@translates("RoiAlign")
def roi_align(c: Call) -> Results:
    """Regions of images, each sampled on a grid of its own."""
    mode, coordinates = c.text("mode", "avg"), "half_pixel" if c.opset >= HALF_PIXELS else "output_half_pixel"
    coordinates = c.text("coordinate_transformation_mode", coordinates)
    if mode not in ("avg", "max") or coordinates not in ("half_pixel", "output_half_pixel"):
        c.fail(f"its attributes are mode={mode!r} and coordinate_transformation_mode={coordinates!r}", UNFIT)
    return c.add(
        "roi_align",
        c.ranked(0, 4, "the images"),
        c.ranked(1, 2, "the regions"),
        c.cast(c.ranked(2, 1, "the numbers of images"), i64),
        height=c.integer("output_height", 1),
        width=c.integer("output_width", 1),
        samples=c.integer("sampling_ratio", 0),
        scale=c.number("spatial_scale", 1.0),
        half_pixel=coordinates == "half_pixel",
        largest=mode == "max",
    )


@translates("MaxRoiPool")
def max_roi_pool(c: Call) -> Results:
    """The largest elements of parts of regions, whose tensor begins with the number of the image."""
    regions = c.ranked(1, 2, "the regions")
    images, corners = (
        c.add("slice", regions, starts=(a,), ends=(b,), axes=(1,), steps=(1,)) for a, b in ((0, 1), (1, 5))
    )
    height, width = c.ints_for("pooled_shape", 2, 1)
    return c.add(
        "roi_max_pool",
        c.ranked(0, 4, "the images"),
        corners,
        c.cast(c.reshape(images, (regions.shape[0],)), i64),
        height=height,
        width=width,
        scale=c.number("spatial_scale", 1.0),
    )
