"""Convolutions, products with matrices, and pools."""

from __future__ import annotations

import math

from weft.frontends.caffe.call import Call
from weft.frontends.caffe.parameters import Parameters
from weft.frontends.caffe.registry import Tops, layer
from weft.graph.builder import Operand, static_sizes, total
from weft.graph.composites.pooling import spatial_axes
from weft.graph.composites.slicing import equal_sizes
from weft.graph.composites.windows import Window
from weft.support.dtypes import i32


def _each(
    c: Call, p: Parameters, rank: int, name: str, default: int, least: int, short: str | None = None
) -> list[int]:
    """Returns a parameter of a window for each of *rank* dimensions: repeated, or of images as `kernel_h` and `kernel_w`."""
    both = f"{short or name}_h", f"{short or name}_w"
    if rank == 2 and (p.has(both[0]) or p.has(both[1])):
        return [p.integer(n, default, least) for n in both]
    found = p.integers(name, least) or [default]
    if len(found) not in (1, rank):
        c.fail(f"{name} has {len(found)} values; its windows have {rank} dimensions", f"write {name} once, or for each")
    return found * rank if len(found) == 1 else found


def window_of(c: Call, p: Parameters, rank: int = 2) -> Window:
    """Returns the window that *p* says, of *rank* dimensions; raises `ModelError` where it has no size."""
    kernel = _each(c, p, rank, "kernel_size", 0, 1, "kernel")
    if 0 in kernel:
        c.fail("it has no kernel_size", "write kernel_size: 3")
    pads = _each(c, p, rank, "pad", 0, 0)
    return Window(kernel, _each(c, p, rank, "stride", 1, 1), _each(c, p, rank, "dilation", 1, 1), pads + pads)


def spatial(c: Call, p: Parameters, x: Operand) -> Operand:
    """Returns *x* as [N, C, ...]: the dimensions before `axis`, that of the channels, as one."""
    axis = c.axis(p.integer("axis", 1), x)
    if axis + 1 >= x.rank:
        c.fail(f"axis: {axis} leaves no dimension for windows to move along: {x!r}", "mend its axis")
    return x if axis == 1 else c.reshape(x, [total(x.shape[:axis]), *x.shape[axis:]])


@layer("Convolution", "DepthwiseConvolution", "ConvolutionDepthwise")
def convolution(c: Call) -> Tops:
    """Convolution along all dimensions that follow the channels; several bottoms have the same weights."""
    p = c.parameters("convolution_param")
    own = c.layer.text("type", "") != "Convolution"
    return tuple(_convolved(c, p, x, by_channel=own) for x in c.inputs or [c.input])


def _convolved(c: Call, p: Parameters, x: Operand, *, by_channel: bool) -> Operand:
    images = spatial(c, p, x)
    channels, filters, group = c.static(images)[0], p.integer("num_output", 0, 0), p.integer("group", 1, 1)
    group = channels if by_channel else group
    _check_groups(c, channels, filters, group)
    w = window_of(c, p, images.rank - 2)
    weight = c.blob(0, [filters, channels // group, *w.kernel], "weight")
    bias = c.blob(1, [filters], "bias") if p.flag("bias_term", True) else None
    y = c.add("conv2d", images, weight, bias, strides=w.strides, pads=w.pads, dilations=w.dilations, group=group)
    return _as_before(c, y, x)


def _as_before(c: Call, y: Operand, x: Operand) -> Operand:
    """Returns *y* with the dimensions that *x* had before its channels, where `spatial` made them one."""
    return y if y.rank == x.rank else c.reshape(y, [*x.shape[: x.rank - y.rank + 1], *y.shape[1:]])


@layer("Deconvolution")
def deconvolution(c: Call) -> Tops:
    """Transposed convolution along all dimensions that follow the channels."""
    p = c.parameters("convolution_param")
    x = spatial(c, p, c.input)
    channels, filters, group = c.static(x)[0], p.integer("num_output", 0, 0), p.integer("group", 1, 1)
    _check_groups(c, channels, filters, group)
    w = window_of(c, p, x.rank - 2)
    weight = c.blob(0, [channels, filters // group, *w.kernel], "weight")
    bias = c.blob(1, [filters], "bias") if p.flag("bias_term", True) else None
    window = {"strides": w.strides, "pads": w.pads, "dilations": w.dilations, "output_padding": [0] * len(w.kernel)}
    y = c.add("conv_transpose2d", x, weight, bias, **window, group=group)
    return _as_before(c, y, c.input)


def _check_groups(c: Call, channels: int, filters: int, group: int) -> None:
    if not filters or channels % group or filters % group:
        c.fail(
            f"group: {group} does not divide {channels} channels and num_output: {filters}",
            "mend its convolution_param",
        )


@layer("InnerProduct")
def inner_product(c: Call) -> Tops:
    """The product of all that follows `axis` with a matrix."""
    p, x = c.parameters("inner_product_param"), c.input
    axis, outputs = c.axis(p.integer("axis", 1), x), p.integer("num_output", 0, 1)
    inner = static_sizes(x.shape[axis:])
    if inner is None:
        c.fail(f"it needs sizes that are numbers: {x!r}")
    inputs = math.prod(inner)
    flat = c.reshape(x, [*x.shape[:axis], inputs])
    if p.flag("transpose", False):
        matrix: Operand = c.blob(0, [inputs, outputs], "weight")
    else:
        matrix = c.transpose(c.blob(0, [outputs, inputs], "weight"), [1, 0])
    y = c.add("matmul", flat, matrix)
    return c.add("add", y, c.blob(1, [outputs], "bias")) if p.flag("bias_term", True) else y


@layer("Embed")
def embed(c: Call) -> Tops:
    """The rows of a matrix at whole numbers, and biases."""
    p = c.parameters("embed_param")
    rows, outputs = p.integer("input_dim", 0, 1), p.integer("num_output", 0, 1)
    y = c.add("gather", c.blob(0, [rows, outputs], "weight"), c.cast(c.input, i32), axis=0)
    return c.add("add", y, c.blob(1, [outputs], "bias")) if p.flag("bias_term", True) else y


@layer("Pooling")
def pooling(c: Call) -> Tops:
    """The largest element or the mean of each window; the last window may pass the edge."""
    p, x = c.parameters("pooling_param"), c.image()
    largest = p.choice("pool", True, {"MAX": True, "AVE": False, "0": True, "1": False})
    if p.flag("global_pooling", False):
        return c.add("reduce_max" if largest else "reduce_mean", x, axes=spatial_axes(x), keepdims=True)
    w = window_of(c, p)
    ceil_mode = p.choice("round_mode", True, {"CEIL": True, "FLOOR": False, "0": True, "1": False})
    ceil_mode = ceil_mode and p.flag("ceil_mode", True)
    if largest:
        y = c.add("max_pool2d", x, **w.attributes, ceil_mode=ceil_mode)
        return y if c.tops < 2 else (y, _places(c, x, w, ceil_mode=ceil_mode))
    return c.add("avg_pool2d", x, **w.attributes, ceil_mode=ceil_mode, count_include_pad=True)


def _places(c: Call, x: Operand, w: Window, *, ceil_mode: bool) -> Operand:
    """Returns where in its channel, row by row, each window's largest element is, as floats."""
    flat = c.add("max_pool2d_indices", x, **w.attributes, ceil_mode=ceil_mode, column_major=False)
    return c.cast(c.add("trunc_mod", flat, c.scalar(math.prod(c.static(x)[1:]), flat.dtype)), x.dtype)


@layer("LRN")
def lrn(c: Call) -> Tops:
    """Local response normalisation, across channels or within each."""
    p, x = c.parameters("lrn_param"), c.image()
    size, k = p.integer("local_size", 5, 1), p.number("k", 1.0)
    alpha, beta = p.number("alpha", 1.0), p.number("beta", 0.75)
    if size % 2 == 0:
        c.fail(f"local_size: {size} should be odd")
    within = {"ACROSS_CHANNELS": False, "WITHIN_CHANNEL": True, "0": False, "1": True}
    if not p.choice("norm_region", False, within):
        return c.add("lrn", x, size=size, alpha=alpha, beta=beta, bias=k)
    half = (size - 1) // 2
    window = Window([size] * 2, [1, 1], [1, 1], [half] * 4)
    mean = c.add("avg_pool2d", c.add("mul", x, x), **window.attributes, count_include_pad=True)
    base = c.add("add", c.add("mul", mean, c.number(alpha, x)), c.number(k, x))
    return c.add("mul", x, c.add("power", base, c.number(-beta, x)))


@layer("ShuffleChannel")
def shuffle_channel(c: Call) -> Tops:
    """The channels of `group` groups, taken in turns."""
    x, group = c.image(), c.parameters("shuffle_channel_param").integer("group", 1, 1)
    channels, h, w = c.static(x)
    if channels % group:
        c.fail(f"group: {group} does not divide {channels} channels")
    parts = c.transpose(c.reshape(x, [x.shape[0], group, channels // group, h, w]), [0, 2, 1, 3, 4])
    return c.reshape(parts, x.shape)


@layer("Slice")
def slice_(c: Call) -> Tops:
    """Pieces along an axis, equal ones or those between the points."""
    p, x = c.parameters("slice_param"), c.input
    axis = c.axis(p.integer("slice_dim" if p.has("slice_dim") else "axis", 1), x)
    points = p.integers("slice_point", 1)
    if not points:
        return c.add_many("split", x, axis=axis, sizes=tuple(equal_sizes(x.shape[axis], max(c.tops, 1))))
    size = static_sizes(x.shape[axis : axis + 1])
    ends = [*points, size[0] if size else 0]
    sizes = [b - a for a, b in zip([0, *points], ends, strict=True)]
    if min(sizes) < 1:
        c.fail(f"slice_point: {points} do not rise within dimension {axis} of {x!r}", "mend its slice_param")
    return c.add_many("split", x, axis=axis, sizes=tuple(sizes))
