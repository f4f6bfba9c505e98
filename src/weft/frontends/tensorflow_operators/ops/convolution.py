"""Convolutions, pools, and the biases of images."""

from __future__ import annotations

from functools import partial, reduce

from weft.frontends.tensorflow_operators.call import SAVE_AGAIN, Call
from weft.frontends.tensorflow_operators.images import (
    LOWEST,
    convolved,
    is_channels_last,
    pooled,
    static_size,
    taps,
    transposed,
)
from weft.frontends.tensorflow_operators.registry import translates
from weft.graph.builder import Operand


def outputs_first(c: Call, kernel: Operand) -> Operand:
    """Returns a kernel [*sizes, in, out] as [out, in, *sizes]."""
    n = kernel.rank - 2
    return c.permuted(kernel, [n + 1, n, *range(n)])


@translates("Conv2D", "Conv3D")
def convolution(c: Call) -> Operand:
    """A convolution; its weight is [*sizes, in / groups, out]."""
    return convolved(c, c.tensor(0), outputs_first(c, c.tensor(1)), None)


@translates("DepthwiseConv2dNative")
def depthwise(c: Call) -> Operand:
    """A convolution of each channel by itself; its weight is [H, W, in, multiplier]."""
    kernel = c.permuted(c.tensor(1, 4), [2, 3, 0, 1])
    weight = c.reshape(kernel, [kernel.shape[0] * kernel.shape[1], 1, *kernel.shape[2:]])
    return convolved(c, c.tensor(0), weight, None)


@translates("Conv2DBackpropInput", "Conv3DBackpropInputV2")
def transposed_convolution(c: Call) -> Operand:
    """A transposed convolution, in the sizes that the first input gives; its weight is [*sizes, out, in]."""
    sizes, weight = c.sizes(0, "the sizes of the result"), c.tensor(1)
    last, n = is_channels_last(c), weight.rank - 2
    if len(sizes) not in (n, n + 2):
        c.fail(f"the sizes of its result are {sizes}", SAVE_AGAIN)
    wanted = sizes if len(sizes) == n else sizes[1:-1] if last else sizes[2:]
    return transposed(c, c.tensor(2), outputs_first(c, weight), None, wanted)


@translates("AvgPool", "MaxPool", "AvgPool3D", "MaxPool3D")
def pool(c: Call) -> Operand:
    """The mean, or the largest element, of each window."""
    n = 3 if c.op.endswith("3D") else 2
    return pooled(c, "avg_pool2d" if c.op.startswith("Avg") else "max_pool2d", c.tensor(0, n + 2), n)


@translates("MaxPoolV2")
def pool_of_inputs(c: Call) -> Operand:
    """The largest element of each window, whose sizes and strides are inputs."""
    sizes = {name: c.ints_at(k, f"the attribute {name}") for k, name in ((1, "ksize"), (2, "strides"))}
    inner = Call(c.evaluator, c.source, c.op, c.inputs, {**c.attributes, **sizes}, c.images)
    return pooled(inner, "max_pool2d", c.tensor(0, 4), 2)


@translates("BiasAdd", "BiasAddV1")
def bias_add(c: Call) -> Operand:
    """Adds a number to each channel."""
    x, bias = c.tensor(0), c.tensor(1, 1)
    if not is_channels_last(c) and x.rank > 2:
        return c.add("add", x, c.reshape(bias, [*bias.shape, *[1] * (x.rank - 2)]))
    return c.pointwise(partial(c.add, "add"), x, bias)


@translates("Dilation2D")
def dilation(c: Call) -> Operand:
    """The largest sum of a window's elements and a kernel [H, W, C] (grey-scale morphological dilation)."""
    x, kernel = c.first(c.tensor(0, 4)), c.permuted(c.tensor(1, 3), [2, 0, 1])
    sizes = [static_size(c, s, "its kernel") for s in kernel.shape[1:]]

    def weight(i: int, j: int) -> Operand:
        return c.add("slice", kernel, starts=(i, j), ends=(i + 1, j + 1), axes=(1, 2), steps=(1, 1))

    moved = [c.add("add", part, weight(*place)) for place, part in taps(c, x, sizes, around=LOWEST)]
    return c.last(reduce(partial(c.add, "maximum"), moved))
