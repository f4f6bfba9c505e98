"""Images [N, C, H, W] cut, resampled to sizes that a run tells, and sampled at places that are data."""

from __future__ import annotations

from typing import Final

from weft.frontends.coreml.call import AGAIN, Call
from weft.frontends.coreml.ops.resize import linear_filter
from weft.frontends.coreml.registry import translates
from weft.graph.builder import Operand
from weft.graph.composites.affine_grid import affine_grid
from weft.graph.composites.resize import resample_axis
from weft.graph.composites.sampling import Filter
from weft.graph.composites.slicing import slice_axes
from weft.support.dtypes import f32, i64

_REFLECTED: Final = {("reflection", True), ("symmetric", False)}
"""Paddings that are reflected at the places that coordinates of -1 and 1 are at, as `align_corners` says."""


@translates("crop")
def crop(c: Call) -> Operand:
    """Images without so many rows and columns at each side."""
    x = c.operand()
    sides = [c.ints("crop_height"), c.ints("crop_width")]
    if any(len(s) != 2 for s in sides):
        c.fail("it should cut two numbers of rows, and two of columns", AGAIN)
    ends = [x.shape[d] - s[1] for d, s in zip((x.rank - 2, x.rank - 1), sides, strict=True)]
    return slice_axes(c, x, [x.rank - 2, x.rank - 1], [s[0] for s in sides], ends, [1, 1])


@translates("resize")
def resize(c: Call) -> Operand:
    """The last dimensions resampled to sizes; 0 keeps one."""
    x, sizes, count = c.operand(), c.sizes("shape"), c.integer("resized_dims")
    mode = c.text("interpolation_mode", "LINEAR")
    if not 0 <= count <= min(len(sizes), x.rank) or mode not in ("LINEAR", "NEAREST_NEIGHBOR"):
        c.fail(f"it resamples {count} dimensions of {x!r} by {mode}", AGAIN)
    nearest = Filter("nearest", "asymmetric", "floor")
    how = linear_filter(c.text("sampling_mode", "DEFAULT"), c) if mode == "LINEAR" else nearest
    for k in range(1, count + 1):
        if sizes[-k] != 0:
            x = resample_axis(c, x, x.rank - k, sizes[-k], how)
    return x


@translates("resample")
def resample(c: Call) -> Operand:
    """Images sampled at places [N, H, W, 2], x first."""
    x, at = c.operand(), c.cast(c.operand("coordinates"), f32)
    mode, padding, aligned = c.text("sampling_mode"), c.text("padding_mode"), c.flag("align_corners")
    space = c.text("coordinates_mode")
    if space == "unnormalized":
        at, aligned = _normalized(c, x, at), True
    elif space == "normalized_zero_to_one":
        at = c.add("sub", c.add("mul", at, c.scalar(2, f32)), c.scalar(1, f32))
    elif space != "normalized_minus_one_to_one":
        c.fail(f"its coordinates_mode {space!r} is not supported", AGAIN)
    if mode not in ("bilinear", "nearest"):
        c.fail(f"its sampling_mode {mode!r} is not supported", "use bilinear or nearest")
    outside = "zeros" if padding == "constant" and not c.number("padding_value", 0.0) else padding
    outside = "reflection" if (padding, aligned) in _REFLECTED else outside
    if outside not in ("zeros", "border") and (padding, aligned) not in _REFLECTED:
        c.fail(f"its padding_mode {padding!r} is not supported", "pad with zeros, or the border")
    kind = "linear" if mode == "bilinear" else mode
    return c.add("grid_sample", x, c.cast(at, x.dtype), mode=kind, padding=outside, align_corners=aligned)


def _normalized(c: Call, x: Operand, at: Operand) -> Operand:
    """Returns places in pixels as numbers from -1, the first pixel's centre, to 1, the last one's."""
    last = [c.add("sub", c.size(s), c.scalar(1, i64)) for s in (x.shape[3], x.shape[2])]
    sizes = c.add("concat", *[c.reshape(c.cast(s, f32), [1]) for s in last], axis=0)
    return c.add("sub", c.add("div", c.add("mul", at, c.scalar(2, f32)), sizes), c.scalar(1, f32))


@translates("affine")
def affine(c: Call) -> Operand:
    """Images sampled where affine maps, six numbers each, take the pixels of the result to."""
    x, theta = c.operand(), c.operand("transform_matrix")
    sizes = [c.integer("output_height"), c.integer("output_width")]
    known = {"sampling_mode": "bilinear", "padding_mode": "constant", "coordinates_mode": "normalized_minus_one_to_one"}
    for name, value in known.items():
        if c.text(name) != value:
            c.fail(f"its {name} {c.text(name)!r} is not supported", f"use {value}")
    aligned = c.flag("align_corners")
    maps = c.add("expand", c.reshape(theta, [theta.shape[0], 2, 3]), shape=(x.shape[0], 2, 3))
    grid = affine_grid(c, maps, sizes, align_corners=aligned)
    return c.add("grid_sample", x, grid, mode="linear", padding="zeros", align_corners=aligned)
