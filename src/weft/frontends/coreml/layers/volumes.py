"""Layers on volumes [N, C, D, H, W], and channels that are moved to blocks of pixels and back."""

from __future__ import annotations

from weft.frontends.coreml.call import AGAIN
from weft.frontends.coreml.layer_table import layer
from weft.frontends.coreml.network_call import NetworkCall
from weft.graph.builder import Operand
from weft.graph.composites.pixel_shuffle import depth_to_space, space_to_depth
from weft.graph.composites.windows import Window, same_pads


def _sizes(c: NetworkCall, first: int, default: int) -> list[int]:
    return [c.integer(first + d, default) for d in range(3)]


def _pads(c: NetworkCall, x: Operand, how: Window, kind: int, first: int) -> list[int]:
    """Returns the pads before and after a volume of a *kind*: given from field *first* on, none, or those that keep its size."""
    if kind == 2:
        return same_pads(c, how.kernel, how.strides, how.dilations, x.shape[2:], lower=False)
    given = [c.integer(first + k) for k in range(6)] if kind == 0 else [0] * 6
    return [*given[::2], *given[1::2]]


@layer(1471, "convolution3d")
def convolution3d(c: NetworkCall) -> Operand:
    """A convolution of volumes."""
    x = c.input(rank=5)
    if c.params.flag(86):
        c.fail("a transposed convolution of volumes is not supported", "convert the model to an mlprogram")
    how = Window(_sizes(c, 20, 3), _sizes(c, 31, 1), _sizes(c, 40, 1), [])
    outputs, groups = c.integer(1), c.integer(10, 1)
    w = c.weight(60, (outputs, c.integer(2) // groups, *how.kernel))
    bias = c.weight(61, (outputs,)) if c.params.flag(50) else None
    pads = _pads(c, x, how, c.params.integer(70), 80)
    return c.add("conv2d", x, w, bias, strides=how.strides, pads=pads, dilations=how.dilations, group=groups)


@layer(1465, "pooling3d")
def pooling3d(c: NetworkCall) -> Operand:
    """The largest element, or the mean, of windows of volumes."""
    x, kernel = c.input(rank=5), _sizes(c, 2, 3)
    how = Window(kernel, _sizes(c, 5, 1), [1, 1, 1], [])
    how = Window(kernel, how.strides, how.dilations, _pads(c, x, how, c.params.integer(15), 8))
    if c.params.integer(1) == 0:
        return c.add("max_pool2d", x, **how.attributes)
    return c.add("avg_pool2d", x, **how.attributes, count_include_pad=not c.params.flag(14))


@layer(1466, "globalPooling3d")
def global_pooling3d(c: NetworkCall) -> Operand:
    """The largest element, or the mean, of volumes."""
    return c.add("reduce_mean" if c.params.integer(1) else "reduce_max", c.input(rank=5), axes=(2, 3, 4), keepdims=True)


@layer(345, "reorganizeData")
def reorganize_data(c: NetworkCall) -> Operand:
    """Channels moved to blocks of pixels, or back; those of one channel of the result are far apart, or side by side."""
    mode, size = c.params.integer(1), c.integer(2)
    if mode not in (0, 1, 2) or size < 1:
        c.fail(f"its mode {mode} of blocks {size} wide is not supported", AGAIN)
    if mode == 0:
        return space_to_depth(c, c.input(rank=4), size, outer=True)
    return depth_to_space(c, c.input(rank=4), size, outer=mode == 1)
