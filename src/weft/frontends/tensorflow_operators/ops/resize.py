"""Resampling of images."""

from __future__ import annotations

from dataclasses import replace
from typing import Final

import numpy as np

from weft.frontends.tensorflow_operators.call import SAVE_AGAIN, Call
from weft.frontends.tensorflow_operators.images import static_size
from weft.frontends.tensorflow_operators.registry import translates
from weft.graph.builder import CompileTimeConstant, Operand
from weft.graph.composites.resize import area_axis, resample_axis
from weft.graph.composites.sampling import TENSORFLOW_STEPS, Filter
from weft.ir import ExprLike
from weft.support.dtypes import f32

LARGEST: Final = 1 << 24
"""Pixels along a dimension of a resized image; there are tables of as many rows."""


def _coordinates(c: Call) -> str:
    if c.flag("half_pixel_centers"):
        return "half_pixel"
    return "align_corners" if c.flag("align_corners") else "asymmetric"


def _resampled(c: Call, x: Operand, how: Filter) -> Operand:
    sizes = c.sizes(1, "the size of the resized images")
    if len(sizes) != 2 or any(isinstance(s, int) and s < 1 for s in sizes):
        c.fail(f"it resizes images to {sizes}", SAVE_AGAIN)
    first = c.first(x)
    for d, size in enumerate(sizes, 2):
        first = resample_axis(c, first, d, size, how)
    return c.last(first)


@translates("ResizeBilinear")
def bilinear(c: Call) -> Operand:
    """Bilinear interpolation, to float32."""
    how = Filter(mode="linear", coordinates=_coordinates(c))
    return _resampled(c, c.pointwise(lambda x: c.cast(x, f32), c.tensor(0, 4)), how)


@translates("ResizeNearestNeighbor")
def nearest(c: Call) -> Operand:
    """The nearest pixel."""
    coordinates = _coordinates(c).replace("half_pixel", "tf_half_pixel_for_nn")
    rounding = "round_prefer_ceil" if coordinates == "align_corners" else "floor"
    return _resampled(c, c.tensor(0, 4), Filter(mode="nearest", coordinates=coordinates, nearest=rounding))


@translates("ResizeBicubic")
def bicubic(c: Call) -> Operand:
    """Cubic interpolation (Keys, 1981): with his coefficient for half pixels, and -3/4 otherwise."""
    coordinates = _coordinates(c)
    half = coordinates == "half_pixel"
    how = Filter("cubic", coordinates, cubic=-0.5 if half else -0.75, exclude_outside=half, steps=TENSORFLOW_STEPS)
    return _resampled(c, c.pointwise(lambda x: c.cast(x, f32), c.tensor(0, 4)), how)


@translates("ResizeArea")
def area(c: Call) -> Operand:
    """The means of equal parts of an image."""
    first = c.first(c.pointwise(lambda x: c.cast(x, f32), c.tensor(0, 4)))
    for d, size in enumerate(_known_sizes(c), 2):
        first = area_axis(c, first, d, size)
    return c.last(first)


_KERNELS: Final = {
    "lanczos3": Filter("lanczos3", "half_pixel", exclude_outside=True),
    "lanczos5": Filter("lanczos5", "half_pixel", exclude_outside=True),
    "triangle": Filter("linear", "half_pixel", exclude_outside=True),
    "keyscubic": Filter("cubic", "half_pixel", cubic=-0.5, exclude_outside=True),
}


@translates("ScaleAndTranslate")
def scaled(c: Call) -> Operand:
    """Images resized by a filter, which may average over the pixels that become one."""
    how, kind = _KERNELS.get(c.text("kernel_type", "lanczos3")), c.text("kernel_type", "lanczos3")
    if how is None:
        c.fail(f"the filter {kind!r} is not supported", f"use one of {', '.join(_KERNELS)}")
    first = c.first(c.pointwise(lambda x: c.cast(x, f32), c.tensor(0, 4)))
    own, sizes = [static_size(c, s, "its image") for s in first.shape[2:]], _known_sizes(c)
    ratio = [new / old for new, old in zip(sizes, own, strict=True)]
    moved = np.asarray(c.known(3, "the translation"), np.float64)
    if moved.any() or (c.is_known(2) and not np.allclose(np.asarray(c.known(2, "the scale"), np.float64), ratio)):
        c.fail("images that are moved, or cut, while they are resized are not supported", "cut them before")
    how = replace(how, antialias=c.flag("antialias", True))
    for d, size in enumerate(sizes, 2):
        first = resample_axis(c, first, d, size, how)
    return c.last(first)


def _known_sizes(c: Call) -> list[int]:
    sizes = c.ints_at(1, "the size of the resized images")
    if len(sizes) != 2 or not all(1 <= n <= LARGEST for n in sizes):
        c.fail(f"it resizes images to {sizes}", SAVE_AGAIN)
    return sizes


@translates("CropAndResize")
def crop_and_resize(c: Call) -> Operand:
    """Boxes (y0, x0, y1, x1) of images, as fractions of them, each resized to one size."""
    method, sizes = c.text("method", "bilinear"), c.ints_at(3, "the size of the crops")
    if method != "bilinear" or len(sizes) != 2 or not all(1 <= n <= LARGEST for n in sizes):
        c.fail(f"crops of {sizes} by {method} are not supported", "use bilinear")
    x, boxes, images = c.first(c.cast(c.tensor(0, 4), f32)), c.tensor(1, 2), c.tensor(2, 1)
    own = c.add("gather", x, images, axis=0)
    rows, columns = (_fractions(c, boxes, k, n) for k, n in enumerate(sizes))
    shape: tuple[ExprLike, ...] = (boxes.shape[0], *sizes)
    y = c.add("expand", c.reshape(rows, [boxes.shape[0], sizes[0], 1]), shape=shape)
    across = c.add("expand", c.reshape(columns, [boxes.shape[0], 1, sizes[1]]), shape=shape)
    pair = c.add("concat", *[c.reshape(v, [*shape, 1]) for v in (across, y)], axis=3)
    grid = c.add("sub", c.add("mul", pair, c.scalar(2, f32)), c.scalar(1, f32))
    made = c.add("grid_sample", own, grid, mode="linear", padding="border", align_corners=True)
    inside = c.add("logical_and", _inside(c, y), _inside(c, across))
    outside = c.scalar(c.number("extrapolation_value", 0.0), f32)
    return c.last(c.add("where", c.reshape(inside, [shape[0], 1, *sizes]), made, outside))


def _fractions(c: Call, boxes: Operand, k: int, count: int) -> Operand:
    """Returns where the *count* samples of each box lie along one dimension of its image, as fractions [boxes, count]."""
    low, high = (c.add("slice", boxes, starts=(d,), ends=(d + 1,), axes=(1,), steps=(1,)) for d in (k, k + 2))
    if count == 1:
        return c.add("mul", c.add("add", low, high), c.scalar(0.5, f32))
    part = CompileTimeConstant((np.arange(count) / (count - 1)).astype(np.float32).reshape(1, count))
    return c.add("add", low, c.add("mul", c.add("sub", high, low), part))


def _inside(c: Call, x: Operand) -> Operand:
    """Tells which fractions are from 0 to 1."""
    return c.add("logical_and", c.add("less_equal", c.scalar(0, f32), x), c.add("less_equal", x, c.scalar(1, f32)))
