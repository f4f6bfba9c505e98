"""Convolutional and connected layers, their normalisation, and pools."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final, TypeAlias

import numpy as np

from weft.frontends.darknet.call import Call
from weft.frontends.darknet.ops.activations import ACTIVATIONS
from weft.frontends.darknet.registry import layer
from weft.graph.builder import CompileTimeConstant, Operand
from weft.graph.composites.pooling import spatial_axes
from weft.graph.composites.windows import Window
from weft.ops import same_size

Product: TypeAlias = Callable[[Operand], Operand]

EPSILON: Final = 1e-5
"""Added to variances by the maintained fork of Darknet (blas.c, normalize_cpu)."""

TO_DEVIATION: Final = np.float32(1e-6)
"""Added to standard deviations by the original (the same function)."""

_OTHER_KERNELS: Final = (
    "binary",
    "xnor",
    "antialiasing",
    "share_index",
    "sway",
    "rotate",
    "stretch",
    "stretch_sway",
    "deform",
)
"""Options that make a convolution another one."""


def activated(c: Call, x: Operand, default: str) -> Operand:
    """Returns the layer's activation of *x*."""
    name = c.text("activation", default)
    if name not in ACTIVATIONS:
        c.wrong("activation", "is not supported", f"the activations are {', '.join(ACTIVATIONS)}")
    return ACTIVATIONS[name](c, x)


class Affine:
    """The biases of *count* outputs and, with batch_normalize, their scales and statistics, taken in the file's order."""

    def __init__(self, c: Call, count: int) -> None:
        self.bias = c.take([count], "biases")
        self.statistics: list[Operand] = []

    def take_statistics(self, c: Call) -> None:
        """Takes the scales, means and variances."""
        count = self.bias.array.size
        scale, mean, variance = (c.take([count], what) for what in ("scales", "means", "variances"))
        self.statistics, self.epsilon = [scale, mean, variance], EPSILON
        if not c.is_forks:
            with np.errstate(invalid="ignore", over="ignore"):  # of a damaged file
                squares = np.square(np.sqrt(variance.array) + TO_DEVIATION)
            self.statistics[-1], self.epsilon = CompileTimeConstant(squares, variance.name), 0.0

    def normalized(self, c: Call, x: Operand) -> Operand:
        """Returns `(x - mean) / deviation * scale + bias` of each channel; only where there are statistics."""
        scale, mean, variance = self.statistics
        return c.add("batch_norm", x, scale, self.bias, mean, variance, epsilon=self.epsilon)


def window(c: Call, size: int, pads: list[int]) -> Window:
    """Returns the window of *size* with the layer's strides."""
    stride = c.integer("stride", 1, 1)
    return Window([size] * 2, [c.integer("stride_y", stride, 1), c.integer("stride_x", stride, 1)], [1, 1], pads)


@layer("convolutional", "conv")
def convolutional(c: Call) -> Operand:
    """Convolution, its padding half of the kernel (`pad=1`) or a number (`padding`)."""
    size = c.integer("size", 1, 1)
    return convolved(c, c.image(), c.integer("filters", 1, 1), size, padding_of(c, size))


def padding_of(c: Call, size: int) -> int:
    """Returns the padding of a kernel's side."""
    return size // 2 if c.flag("pad") else c.integer("padding", 0, 0)


def convolved(c: Call, x: Operand, filters: int, size: int, padding: int) -> Operand:
    """Returns the convolution of *x* to so many *filters*, activated, by the layer's options and the next weights."""
    c.refuse(*_OTHER_KERNELS)
    groups, dilation = c.integer("groups", 1, 1), c.integer("dilation", 1, 1)
    if dilation > 1 and 2 * padding != size - 1:
        c.wrong("dilation", "is supported with pad=1 and an odd size", "train the network so")
    channels = c.static(x)[0]
    if channels % groups or filters % groups:
        c.wrong("groups", f"does not divide {channels} channels and {filters} filters")
    affine = Affine(c, filters)
    if c.flag("batch_normalize"):
        affine.take_statistics(c)
    weight = _kernel(c, filters, channels // groups, size)
    w = window(c, size, [padding * dilation] * 4)
    attributes = {"strides": w.strides, "pads": w.pads, "dilations": [dilation] * 2, "group": groups}
    if affine.statistics:
        return activated(c, affine.normalized(c, c.add("conv2d", x, weight, **attributes)), "logistic")
    return activated(c, c.add("conv2d", x, weight, affine.bias, **attributes), "logistic")


def _kernel(c: Call, filters: int, channels: int, size: int) -> CompileTimeConstant:
    """Takes a kernel [filters, channels, size, size], which the file has transposed where the layer is `flipped`."""
    if not c.flag("flipped"):
        return c.take([filters, channels, size, size], "weights")
    taken = c.take([channels * size * size, filters], "weights")
    return CompileTimeConstant(taken.array.T.reshape(filters, channels, size, size), taken.name)


@layer("deconvolutional", "deconv")
def deconvolutional(c: Call) -> Operand:
    """Transposed convolution."""
    x, size, filters = c.image(), c.integer("size", 1, 1), c.integer("filters", 1, 1)
    affine = Affine(c, filters)
    if c.flag("batch_normalize"):
        affine.take_statistics(c)
    weight = c.take([c.static(x)[0], filters, size, size], "weights")
    w = window(c, size, [padding_of(c, size)] * 4)
    y = c.add("conv_transpose2d", x, weight, None if affine.statistics else affine.bias, strides=w.strides, pads=w.pads)
    return activated(c, affine.normalized(c, y) if affine.statistics else y, "logistic")


@layer("connected", "conn")
def connected(c: Call) -> Operand:
    """A product with a matrix, after which images are vectors."""
    x = c.flat()
    return activated(c, product(c, c.static(x)[0], c.integer("output", 1, 1))(x), "logistic")


def product(c: Call, inputs: int, outputs: int) -> Product:
    """Takes the next weights: returns the product of vectors and a matrix, normalised if the layer says so."""
    affine = Affine(c, outputs)
    if c.transposes_matrices:
        matrix: Operand = c.take([inputs, outputs], "weights")
    else:
        matrix = c.transpose(c.take([outputs, inputs], "weights"), [1, 0])
    if c.flag("batch_normalize"):
        affine.take_statistics(c)
        return lambda x: affine.normalized(c, c.add("matmul", x, matrix))
    return lambda x: c.add("add", c.add("matmul", x, matrix), affine.bias)


@layer("batchnorm")
def batchnorm(c: Call) -> Operand:
    """Normalisation of channels by the statistics of training."""
    x = c.image()
    affine = Affine(c, c.static(x)[0])
    affine.take_statistics(c)
    return affine.normalized(c, x)


def _pool_window(c: Call, default_size: int) -> Window:
    """Returns a pool's window; the padding is that of both sides together, size - 1 where it is not given."""
    stride = c.integer("stride", 1, 1)
    size = c.integer("size", default_size or stride, 1)
    padding = c.integer("padding", size - 1, 0)
    before, after = padding // 2, padding - padding // 2
    return window(c, size, [before, before, after, after])


@layer("maxpool", "max")
def maxpool(c: Call) -> Operand:
    """The largest element of each window."""
    c.refuse("maxpool_depth", "antialiasing")
    return c.add("max_pool2d", c.image(), **_pool_window(c, 0).attributes)


@layer("local_avgpool", "local_avg")
def local_avgpool(c: Call) -> Operand:
    """The mean of the elements of each window, those in the padding left out."""
    c.refuse("antialiasing")
    return c.add("avg_pool2d", c.image(), **_pool_window(c, 0).attributes, count_include_pad=False)


@layer("avgpool", "avg")
def avgpool(c: Call) -> Operand:
    """The mean of each channel."""
    x = c.image()
    return c.add("reduce_mean", x, axes=spatial_axes(x), keepdims=True)


@layer("softmax", "soft")
def softmax(c: Call) -> Operand:
    """The softmax over all elements, or over `groups` of them, or (`spatial`) over channels."""
    c.refuse("tree")
    temperature = c.number("temperature", 1.0)
    if temperature == 0:
        c.wrong("temperature", "should not be zero")
    x = c.image() if c.flag("spatial") else c.flat()
    groups = c.integer("groups", 1, 1)
    if temperature != 1.0:
        x = c.add("div", x, c.scalar(temperature, x.dtype))
    if groups == 1:
        return c.add("softmax", x, axis=1)
    count = c.static(x)[0]
    if count % groups:
        c.wrong("groups", f"does not divide {count} elements")
    parts = c.reshape(x, [x.shape[0], groups, count // groups, *x.shape[2:]])
    return c.reshape(c.add("softmax", parts, axis=2), x.shape)


@layer("activation", "logistic", "logxent", "l2norm")
def activation(c: Call) -> Operand:
    """An activation of its own, the loss of a logistic, or the division of each vector by its length."""
    if c.section.type == "activation":
        return activated(c, c.input, "linear")
    if c.section.type in ("logistic", "logxent"):
        return c.add("sigmoid", c.input)
    x = c.image()
    squares = c.add("reduce_sum", c.add("mul", x, x), axes=(1,), keepdims=True)
    return c.add("div", x, c.add("sqrt", squares))


def same_image(a: Operand, b: Operand) -> bool:
    """Tells whether two images have the same height and width."""
    return all(same_size(s, t) for s, t in zip(a.shape[2:], b.shape[2:], strict=True))
