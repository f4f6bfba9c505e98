"""Arithmetic on quantised tensors that gives quantised tensors: sums, products, means and functions of them.

The order of the roundings is that of ONNX Runtime's kernels for x86-64 (AVX2), and integers are equal to theirs; but a softmax,
whose sum is of another order, may differ by one step where it lies within a rounding of the middle of two.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from weft.graph.builder.builder import Builder
from weft.graph.builder.constants import CompileTimeConstant
from weft.graph.builder.partial_evaluator import Operand
from weft.graph.builder.shape_arithmetic import total
from weft.graph.composites.pooling import spatial_axes
from weft.graph.composites.quantized.quantization import centred, dequantize, quantize, requantize, saturate_to
from weft.support.dtypes import DType, f32


class Quantized(NamedTuple):
    """A tensor of integers *q* that stand for `(q - zero) * scale`; scale and zero point are scalars, no zero point is 0."""

    q: Operand
    scale: Operand
    zero: Operand | None


class Encoding(NamedTuple):
    """How a result is quantised: by scalars *scale* and *zero* (None for 0), to integers of *dtype*."""

    scale: Operand
    zero: Operand | None
    dtype: DType


def to_integers(b: Builder, v: Operand, dtype: DType) -> Operand:
    """Rounds floats to even and saturates to *dtype*."""
    return saturate_to(b, b.add("round", v), dtype)


def encode_rounding_last(b: Builder, v: Operand, to: Encoding) -> Operand:
    """Divides by the scale, adds the zero point and then rounds: a tie goes to another side than by `quantize` if zero is odd."""
    return to_integers(b, b.add("add", b.add("div", v, to.scale), zero_as_float(b, to.zero)), to.dtype)


def zero_as_float(b: Builder, zero: Operand | None) -> Operand:
    """Returns a zero point as f32."""
    return b.scalar(0, f32) if zero is None else b.cast(zero, f32)


def add_quantized(b: Builder, x: Quantized, y: Quantized, to: Encoding) -> Operand:
    """Returns the sum of two tensors, which broadcast: `x * (scale_x / scale) + y * (scale_y / scale)` plus a constant."""
    ratios = [b.add("div", v.scale, to.scale) for v in (x, y)]
    zeros = [zero_as_float(b, v.zero) for v in (x, y)]
    shift = b.add("multiply_add", ratios[0], zeros[0], b.add("mul", ratios[1], zeros[1]))
    fixed = b.add("sub", zero_as_float(b, to.zero), shift)
    scaled = b.add("multiply_add", b.cast(y.q, f32), ratios[1], fixed)
    return to_integers(b, b.add("multiply_add", b.cast(x.q, f32), ratios[0], scaled), to.dtype)


def multiply_quantized(b: Builder, x: Quantized, y: Quantized, to: Encoding) -> Operand:
    """Returns the product of two tensors, which broadcast: an exact one of integers, scaled once."""
    product = b.cast(b.add("mul", centred(b, x.q, x.zero), centred(b, y.q, y.zero)), f32)
    scale = b.add("div", b.add("mul", x.scale, y.scale), to.scale)
    return to_integers(b, b.add("add", b.add("mul", product, scale), zero_as_float(b, to.zero)), to.dtype)


def map_quantized(b: Builder, x: Quantized, function: Callable[[Operand], Operand], to: Encoding) -> Operand:
    """Returns a *function* of the numbers that *x* stands for."""
    return quantize(b, function(dequantize(b, x.q, x.scale, x.zero, f32)), to.scale, to.zero, to.dtype)


def encode_again(b: Builder, x: Quantized, to: Encoding) -> Operand:
    """Returns *x* as *to* has it: the same integers where scale and zero point are known to stay."""
    stays = x.q.dtype is to.dtype and _is_same(x.zero, to.zero) and _is_same(x.scale, to.scale) and _is_normal(x.scale)
    return x.q if stays else map_quantized(b, x, lambda v: v, to)


def _is_same(x: Operand | None, y: Operand | None) -> bool:
    """Tells whether two scalars are known to be equal."""
    if isinstance(x, CompileTimeConstant) and isinstance(y, CompileTimeConstant):
        return not x.symbolic and not y.symbolic and bool(np.array_equal(x.array, y.array))
    return x is None and y is None


def _is_normal(scale: Operand) -> bool:
    """Tells whether integers times a known scale, and divided by it, are rounded to themselves."""
    limits = np.finfo(np.float32)
    return isinstance(scale, CompileTimeConstant) and bool(limits.tiny <= scale.array <= limits.max * limits.eps)


def global_average_quantized(b: Builder, x: Quantized, to: Encoding) -> Operand:
    """Returns the mean over the spatial positions of images [N, C, ...]: an exact sum, scaled once."""
    axes = spatial_axes(x.q)
    sums = b.cast(b.add("reduce_sum", centred(b, x.q, x.zero), axes=axes, keepdims=True), f32)
    count = b.cast(b.size(total([x.q.shape[d] for d in axes])), f32)
    scaled = b.add("mul", sums, b.add("div", x.scale, b.add("mul", to.scale, count)))
    return requantize(b, scaled, to.zero, to.dtype)


def softmax_quantized(b: Builder, x: Quantized, axis: int, to: Encoding) -> Operand:
    """Returns the softmax along *axis*; its steps are whole parts of one, `1 / floor(1 / scale)`.

    The zero point of *x* has no effect: softmax does not change where a number is added to all.
    """
    parts = b.add("softmax", b.add("mul", b.cast(x.q, f32), x.scale), axis=axis)
    return requantize(b, b.add("mul", parts, b.add("floor", b.add("reciprocal", to.scale))), to.zero, to.dtype)


def dynamically_quantized(b: Builder, x: Operand, dtype: DType) -> Quantized:
    """Returns floats as integers of *dtype*, unsigned: the range that they and zero have is spread over all of them."""
    low, high = dtype.int_range
    zero = b.scalar(0, f32)
    least = b.add("minimum", b.add("reduce_min", x, keepdims=False), zero)
    most = b.add("maximum", b.add("reduce_max", x, keepdims=False), zero)
    spread = b.add("sub", most, least)
    step = b.add("div", spread, b.scalar(high - low, f32))
    scale = b.add("where", b.add("equal", spread, zero), b.scalar(1, f32), step)
    offset = to_integers(b, b.add("div", b.add("neg", least), scale), dtype)
    return Quantized(quantize(b, x, scale, offset, dtype), scale, offset)
