"""Layers on images [N, C, H, W]: convolutions, pools, normalisations, padding, resampling."""

from __future__ import annotations

from typing import Final

from weft.frontends.coreml.call import AGAIN
from weft.frontends.coreml.layer_table import layer
from weft.frontends.coreml.network_call import EPSILON, NetworkCall
from weft.frontends.coreml.ops.resize import linear_filter, resampled
from weft.frontends.protobuf_message import Message
from weft.graph.builder import Operand, static_sizes
from weft.graph.composites.normalization import inverse_deviation, mean_and_variance
from weft.graph.composites.pooling import lp_pool
from weft.graph.composites.resize import scaled_size
from weft.graph.composites.sampling import Filter
from weft.graph.composites.slicing import slice_axes
from weft.graph.composites.windows import Window, same_pads, transposed_pads

_SAMPLING: Final = ("STRICT_ALIGN_CORNERS", "ALIGN_CORNERS", "DEFAULT", "OFFSET_CORNERS")
"""The modes of sampling by their numbers."""


def _border(c: NetworkCall, m: Message) -> list[int]:
    """Returns the pads of a message `BorderAmounts`: those before, then those after; none where it is empty."""
    sides = [*m.messages(10)]
    if not sides:
        return [0, 0, 0, 0]
    if len(sides) != 2:
        c.fail(f"its border has {len(sides)} dimensions", AGAIN)
    return [s.integer(1) for s in sides] + [s.integer(2) for s in sides]


def _window(
    c: NetworkCall, x: Operand, kernel: list[int], strides: list[int], dilations: list[int], valid: int, same: int
) -> Window:
    """Returns a window whose padding is the message of field *valid*, or that of *same*."""
    if c.params.has(same):
        pads = same_pads(c, kernel, strides, dilations, x.shape[2:], lower=c.params.inner(same).integer(1) == 1)
    else:
        pads = _border(c, c.params.inner(valid).inner(1))
    return Window(kernel, strides, dilations, pads)


@layer(100, "convolution")
def convolution(c: NetworkCall) -> Operand:
    """A convolution, or a transposed one."""
    x = c.input(rank=4)
    outputs, inputs, groups = c.integer(1), c.integer(2), c.integer(10, 1)
    kernel, strides, dilations = c.ints(20, (3, 3)), c.ints(30, (1, 1)), c.ints(40, (1, 1))
    bias = c.weight(91, (outputs,)) if c.params.flag(70) else None
    if c.params.flag(60):
        return _transposed(
            c, x, c.weight(90, (inputs, outputs // groups, *kernel)), bias, Window(kernel, strides, dilations, [])
        )
    how = _window(c, x, kernel, strides, dilations, 50, 51)
    w = c.weight(90, (outputs, inputs, *kernel))
    return c.add("conv2d", x, w, bias, strides=strides, pads=how.pads, dilations=dilations, group=groups)


def _transposed(c: NetworkCall, x: Operand, w: Operand, bias: Operand | None, how: Window) -> Operand:
    wanted, spatial = c.ints(100), static_sizes(x.shape[2:])
    how = Window(how.kernel, how.strides, how.dilations, _border(c, c.params.inner(50).inner(1)))
    extra = [0, 0]
    if c.params.has(51) and not wanted and spatial is not None:
        wanted = [s * k for s, k in zip(spatial, how.strides, strict=True)]
    if wanted:
        if spatial is None:
            c.fail(f"the sizes of its input are not known: {x!r}", "convert it with fixed shapes")
        how, extra = transposed_pads(how, spatial, extra, wanted, lower=False)
    attributes = {"strides": how.strides, "pads": how.pads, "dilations": how.dilations, "output_padding": extra}
    return c.add("conv_transpose2d", x, w, bias, **attributes, group=c.integer(10, 1))


@layer(120, "pooling")
def pooling(c: NetworkCall) -> Operand:
    """The largest element, the mean, or the root of the sum of squares of windows, or of whole images."""
    x, kind = c.input(rank=4), c.params.integer(1)
    if kind not in (0, 1, 2):
        c.fail(f"its type {kind} is not supported", "use MAX, AVERAGE or L2")
    if c.params.flag(60):
        operator = ("reduce_max", "reduce_mean", "reduce_l2")[kind]
        return c.add(operator, x, axes=(2, 3), keepdims=True)
    how = _window(c, x, c.ints(10, (3, 3)), c.ints(20, (1, 1)), [1, 1], 30, 31)
    complete = c.params.message(32)
    if complete is not None:
        how = Window(how.kernel, how.strides, how.dilations, [*complete.integers(10)] * 2 or [0] * 4)
    if kind == 2:
        return lp_pool(c, x, 2, how, ceil_mode=complete is not None)
    if kind == 0:
        return c.add("max_pool2d", x, **how.attributes, ceil_mode=complete is not None)
    counted = not c.params.flag(50)
    return c.add("avg_pool2d", x, **how.attributes, ceil_mode=complete is not None, count_include_pad=counted)


@layer(160, "batchnorm")
def batchnorm(c: NetworkCall) -> Operand:
    """Channels normalised, by numbers of training or by their own."""
    x, channels, epsilon = c.input(), c.integer(1), c.params.number(10) or 1e-5
    scale, bias = c.weight(15, (channels,)), c.weight(16, (channels,))
    if c.params.flag(6):
        mean, variance = mean_and_variance(c, x, tuple(range(2, x.rank)))
        x = c.add("mul", c.add("sub", x, mean), inverse_deviation(c, variance, epsilon))
        shape = [1, channels, *[1] * (x.rank - 2)]
        return c.add("add", c.add("mul", x, c.reshape(scale, shape)), c.reshape(bias, shape))
    if c.params.flag(5):
        c.fail("statistics of the batch are not supported", "convert it for inference")
    return c.add("batch_norm", x, scale, bias, c.weight(17, (channels,)), c.weight(18, (channels,)), epsilon=epsilon)


@layer(165, "mvn")
def mean_variance(c: NetworkCall) -> Operand:
    """Images less their mean, and divided by their deviation if wanted, each channel by itself or all together."""
    x, p = c.input(), c.params
    axes = tuple(range(max(x.rank - (3 if p.flag(1) else 2), 0), x.rank))
    mean, variance = mean_and_variance(c, x, axes)
    made = c.add("sub", x, mean)
    return (
        c.add("div", made, c.add("sqrt", c.add("add", variance, c.scalar(p.number(3) or EPSILON, x.dtype))))
        if p.flag(2)
        else made
    )


@layer(170, "l2normalize")
def l2_normalize(c: NetworkCall) -> Operand:
    """Images divided by the root of the sum of squares of their elements."""
    x = c.input()
    squares = c.add("reduce_sum", c.add("square", x), axes=tuple(range(max(x.rank - 3, 0), x.rank)), keepdims=True)
    return c.add("div", x, c.add("sqrt", c.add("add", squares, c.scalar(c.params.number(1) or EPSILON, x.dtype))))


@layer(180, "lrn")
def lrn(c: NetworkCall) -> Operand:
    """Divided by a power of the sum of squares of channels around each."""
    p = c.params
    return c.add("lrn", c.input(), size=c.integer(3), alpha=p.number(1), beta=p.number(2), bias=p.number(4) or 1.0)


@layer(200, "padding")
def padding(c: NetworkCall) -> Operand:
    """Pixels around images."""
    pads = _border(c, c.params.inner(10))
    mode = "reflect" if c.params.has(2) else "edge" if c.params.has(3) else "constant"
    lead = [0] * (c.input().rank - 2)
    value = c.params.inner(1).number(1)
    return c.add("pad", c.input(), pads=(*lead, *pads[:2], *lead, *pads[2:]), mode=mode, value=value)


@layer(210, "upsample")
def upsample(c: NetworkCall) -> Operand:
    """Images of a larger size."""
    x = c.input(rank=4)
    factors = c.params.numbers(7).tolist() or [float(f) for f in c.ints(1, (1, 1))]
    height, width = (scaled_size(c, s, f) for s, f in zip(x.shape[2:], factors, strict=True))
    if c.params.integer(5) == 0:
        return resampled(c, x, (height, width), Filter("nearest", "asymmetric", "floor"))
    kinds = {0: "asymmetric", 1: "align_corners", 2: "half_pixel"}
    return resampled(c, x, (height, width), Filter("linear", kinds[c.params.integer(6)], "floor"))


@layer(190, "crop")
def crop(c: NetworkCall) -> Operand:
    """Images without their borders; or a part of them as large as others, from an offset on."""
    x = c.input()
    axes = [x.rank - 2, x.rank - 1]
    if len(c.inputs) > 1:
        starts = c.ints(5, (0, 0))
        ends = [s + c.input(1).shape[d] for s, d in zip(starts, axes, strict=True)]
        return slice_axes(c, x, axes, starts, ends, [1, 1])
    border = _border(c, c.params.inner(1))
    return slice_axes(c, x, axes, border[:2], [x.shape[d] - n for d, n in zip(axes, border[2:], strict=True)], [1, 1])


@layer(211, "resizeBilinear")
def resize_bilinear(c: NetworkCall) -> Operand:
    """Images resampled to a size, each pixel between four others."""
    height, width = c.ints(1)
    mode = _SAMPLING[c.params.inner(2).integer(1)]
    return resampled(c, c.input(), (height, width), linear_filter(mode, c))
