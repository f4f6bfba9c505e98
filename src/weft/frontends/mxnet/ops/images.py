"""Operators on images [N, C, H, W]: resampling, sampling at places, regions, and pixels exchanged for channels."""

from __future__ import annotations

from typing import Final

import numpy as np

from weft.frontends.mxnet.call import Call
from weft.frontends.mxnet.registry import translates
from weft.graph.builder import CompileTimeConstant, Operand, static_sizes
from weft.graph.composites import pixel_shuffle
from weft.graph.composites.normalization import group_norm as group_norm_of
from weft.graph.composites.resize import resample_axis
from weft.graph.composites.sampling import Filter
from weft.graph.composites.sequences import concat, element
from weft.graph.composites.slicing import FAR, slice_axes
from weft.ir import ExprLike
from weft.support.dtypes import f32, i64, u8

_FILTERS: Final = {0: Filter("nearest", "asymmetric", "floor"), 1: Filter("linear", "half_pixel")}
_BRIGHTEST: Final = 255.0


@translates("depth_to_space")
def depth_to_space(c: Call) -> Operand:
    """Channels moved to blocks of pixels."""
    return pixel_shuffle.depth_to_space(c, c.input(0, rank=4), c.integer("block_size"), outer=True)


@translates("space_to_depth")
def space_to_depth(c: Call) -> Operand:
    """Blocks of pixels moved to channels."""
    return pixel_shuffle.space_to_depth(c, c.input(0, rank=4), c.integer("block_size"), outer=True)


@translates("GroupNorm")
def group_norm(c: Call) -> Operand:
    """Groups of channels normalised by their own mean and variance; MXNet 1 has a scale for each group, 2 for each channel."""
    scale, count = c.input(1), c.integer("num_groups", 1)
    of_groups = static_sizes(scale.shape) == [count]
    return group_norm_of(c, c.input(0), count, scale, c.input(2), c.number("eps", 1e-5), of_groups=of_groups)


@translates("_contrib_AdaptiveAvgPooling2D")
def adaptive_average(c: Call) -> Operand:
    """Means of as many parts of an image as there are to be pixels; the parts may overlap by one pixel."""
    x = c.input(0, rank=4)
    given = c.ints("output_size", (1,)) or [1]
    sizes, wanted = static_sizes(x.shape[2:]), given * 2 if len(given) == 1 else given
    if wanted == [1, 1]:
        return c.add("reduce_mean", x, axes=(2, 3), keepdims=True)
    if sizes is None or len(wanted) != 2 or any(not 1 <= w <= s for w, s in zip(wanted, sizes, strict=True)):
        c.fail(f"it makes {wanted} pixels of {x!r}", "give its images sizes of numbers, no smaller than the result's")
    for d, (size, count) in enumerate(zip(sizes, wanted, strict=True)):
        parts = [(k * size // count, -(-(k + 1) * size // count)) for k in range(count)]
        means = [
            c.add("reduce_mean", slice_axes(c, x, [d + 2], [b], [e], [1]), axes=(d + 2,), keepdims=True)
            for b, e in parts
        ]
        x = concat(c, means, d + 2)
    return x


@translates("_contrib_BilinearResize2D")
def bilinear_resize(c: Call) -> Operand:
    """Pixels between four others, with the corners in their places unless said otherwise."""
    x, mode = c.input(0, rank=4), c.text("mode", "size")
    how = Filter("linear", "align_corners" if c.flag("align_corners", True) else "half_pixel", "floor")
    sizes: list[ExprLike]
    if mode == "size" and c.value("scale_height") is None:
        sizes = [c.integer("height", 1), c.integer("width", 1)]
    elif mode == "like":
        sizes = [*c.input(1, rank=4).shape[2:]]
    else:
        known = static_sizes(x.shape[2:])
        if mode != "size" or known is None:
            c.fail(f"its mode {mode!r} of {x!r} is not supported", "use the mode size, and images of known sizes")
        sizes = [int(s * c.number(f"scale_{n}")) for s, n in zip(known, ("height", "width"), strict=True)]
    for d, size in zip((2, 3), sizes, strict=True):
        x = resample_axis(c, x, d, size, how)
    return x


@translates("BilinearSampler")
def bilinear_sampler(c: Call) -> Operand:
    """Images sampled at places [N, 2, H, W] from -1 to 1, x first; outside they are zeros."""
    return _sampled(c, c.input(0, rank=4), c.input(1, rank=4))


def _sampled(c: Call, x: Operand, grid: Operand) -> Operand:
    places = c.transpose(grid, [0, 2, 3, 1])
    return c.add("grid_sample", x, places, mode="linear", padding="zeros", align_corners=True)


@translates("GridGenerator")
def grid_generator(c: Call) -> Operand:
    """The places that an affine map of six numbers, or a flow of pixels, takes those of a grid to."""
    if c.text("transform_type") == "warp":
        return _warped(c, c.input(0, rank=4))
    height, width = c.ints("target_shape")
    return _mapped(c, c.input(0), height, width)


def _warped(c: Call, flow: Operand) -> Operand:
    sizes = static_sizes(flow.shape[2:])
    if sizes is None:
        c.fail(f"its flow {flow!r} is of symbolic size", "give it numbers: shapes={...}")
    made: list[Operand] = []
    for k, size in enumerate(reversed(sizes)):  # columns, then rows
        own = c.reshape(
            c.cast(c.add("range", start=0, size=size, step=1), f32), [1, 1, size] if k == 0 else [1, size, 1]
        )
        moved = c.add("add", element(c, flow, 1, k), own)
        by = c.scalar(2 / max(size - 1, 1), f32)
        made.append(c.add("sub", c.add("mul", moved, by), c.scalar(1, f32)))
    return c.add("concat", *[c.reshape(m, [m.shape[0], 1, *m.shape[1:]]) for m in made], axis=1)


def _mapped(c: Call, theta: Operand, height: int, width: int) -> Operand:
    """Returns the places [N, 2, height, width] that maps [N, 6] take the pixels of an image to."""
    if not (1 <= height <= 1 << 14 and 1 <= width <= 1 << 14):
        c.fail(f"its grid has {height} x {width} places", "save the network again")
    x, y = (c.cast(c.add("range", start=0, size=n, step=1), f32) for n in (width, height))
    spread = [
        c.add("sub", c.add("mul", v, c.scalar(2 / max(n - 1, 1), f32)), c.scalar(1, f32))
        for v, n in ((x, width), (y, height))
    ]
    rows = [
        c.add("expand", c.reshape(spread[0], [1, width]), shape=(height, width)),
        c.add("expand", c.reshape(spread[1], [height, 1]), shape=(height, width)),
        c.add("full", shape=(height, width), value=1, dtype=f32),
    ]
    grid = concat(c, [c.reshape(r, [1, height * width]) for r in rows], 0)
    made = c.add("matmul", c.reshape(theta, [theta.shape[0], 2, 3]), grid)
    return c.reshape(made, [theta.shape[0], 2, height, width])


@translates("SpatialTransformer")
def spatial_transformer(c: Call) -> Operand:
    """Images sampled where an affine map takes the pixels of the result to (Jaderberg et al., 2015)."""
    height, width = c.ints("target_shape")
    return _sampled(c, c.input(0, rank=4), _mapped(c, c.input(1), height, width))


@translates("Crop")
def crop(c: Call) -> Operand:
    """A part of an image, of the size given or of another image, at an offset or in the middle."""
    x = c.input(0, rank=4)
    sizes: list[ExprLike] = [*c.input(1, rank=4).shape[2:]] if len(c.inputs) == 2 else [*c.ints("h_w")]
    starts: list[ExprLike] = [*c.ints("offset", (0, 0))]
    if c.flag("center_crop"):
        starts = [(own - size) // 2 for own, size in zip(x.shape[2:], sizes, strict=True)]
    return slice_axes(c, x, [2, 3], starts, [b + n for b, n in zip(starts, sizes, strict=True)], [1, 1])


@translates("_contrib_ROIAlign")
def roi_align(c: Call) -> Operand:
    """Regions [R, 5] (image, x0, y0, x1, y1) as images of one size, of places between pixels (He et al., 2017)."""
    if c.flag("position_sensitive"):
        c.fail("position_sensitive is not supported", "build the network without it")
    samples, half_pixel = max(c.integer("sample_ratio", -1), 0), c.flag("aligned")
    return _of_regions(c, "roi_align", samples=samples, half_pixel=half_pixel)


@translates("ROIPooling")
def roi_pooling(c: Call) -> Operand:
    """The largest elements of the parts of regions [R, 5] (image, x0, y0, x1, y1) (Girshick, 2015)."""
    return _of_regions(c, "roi_max_pool")


def _of_regions(c: Call, op: str, **attributes: int) -> Operand:
    """Returns the result of an operator on images, corners of regions, and which image each is of."""
    x, regions = c.input(0, rank=4), c.input(1, rank=2)
    height, width = c.ints("pooled_size")
    which = c.cast(element(c, regions, 1, 0), i64)
    corners = slice_axes(c, regions, [1], [1], [5], [1])
    return c.add(op, x, corners, which, height=height, width=width, scale=c.number("spatial_scale"), **attributes)


def _image(c: Call) -> Operand:
    x = c.input()
    if x.rank not in (3, 4):
        c.fail(f"it takes an image, or images of one size: {x!r}", "give it three dimensions, or four")
    return x


@translates("_image_to_tensor")
def to_tensor(c: Call) -> Operand:
    """Channels first, and numbers from 0 to 1 for those from 0 to 255."""
    x = _image(c)
    order = [*range(x.rank - 3), x.rank - 1, x.rank - 3, x.rank - 2]
    return c.add("div", c.transpose(c.cast(x, f32), order), c.scalar(_BRIGHTEST, f32))


@translates("_image_normalize")
def normalize(c: Call) -> Operand:
    """The channels, which are first, less their means, and divided by their deviations."""
    mean, deviation = (
        CompileTimeConstant(np.array(c.numbers(name, [d]), np.float32).reshape(-1, 1, 1))
        for name, d in (("mean", 0.0), ("std", 1.0))
    )
    return c.add("div", c.add("sub", _image(c), mean), deviation)


@translates("_image_crop")
def crop_image(c: Call) -> Operand:
    """A part of each image."""
    x = _image(c)
    starts = [c.integer(name) for name in ("y", "x")]
    ends = [start + c.integer(name) for start, name in zip(starts, ("height", "width"), strict=True)]
    return slice_axes(c, x, [x.rank - 3, x.rank - 2], starts, ends, [1, 1])


@translates("_image_flip_left_right", "_image_flip_top_bottom")
def flip(c: Call) -> Operand:
    """Images mirrored, or upside down."""
    x = _image(c)
    return slice_axes(c, x, [x.rank - (2 if "left" in c.node.op else 3)], [-1], [-FAR], [-1])


@translates("_image_resize")
def resize_image(c: Call) -> Operand:
    """Images of another size: the nearest pixels, or between four; bytes are rounded."""
    x, kind = _image(c), c.integer("interp", 1)
    if kind not in _FILTERS:
        c.fail(f"its interp {kind} is not supported", "use 0 (nearest) or 1 (bilinear)")
    made = c.cast(x, f32)
    for d, size in zip((x.rank - 3, x.rank - 2), _sizes(c, x), strict=True):
        made = resample_axis(c, made, d, size, _FILTERS[kind])
    return c.cast(c.add("round", made), u8) if x.dtype is u8 else c.cast(made, x.dtype)


def _sizes(c: Call, x: Operand) -> list[int]:
    """Returns the height and the width: one number is both, or with `keep_ratio` that of the shorter side."""
    given = c.ints("size", ())
    if len(given) not in (1, 2) or min(given) < 1:
        c.wrong("size", "a size, or a width and a height")
    if len(given) == 2:
        return given[::-1]
    old = static_sizes(x.shape[x.rank - 3 : x.rank - 1])
    if not c.flag("keep_ratio"):
        return given * 2
    if old is None or not min(old):
        c.fail(f"it keeps the ratio of sides that are not known: {x!r}", "give the images a size: shapes={...}")
    return [int(given[0] * s / min(old)) for s in old]
