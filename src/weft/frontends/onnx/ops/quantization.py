"""Quantisation: to 8-bit integers and back, and products of quantised tensors."""

from __future__ import annotations

from weft.frontends.onnx.call import Call, Operand, Results
from weft.frontends.onnx.file.tensors import element_type
from weft.frontends.onnx.ops.convolution import convolved
from weft.frontends.onnx.registry import translates
from weft.graph.composites.quantized import quantization as composites
from weft.support.dtypes import DType, f32, u8

NO_SMALL_TYPES = "integers of fewer than 8 bits, 8-bit floats"


@translates("QuantizeLinear", limits="6-bit floats")
def quantize_linear(c: Call) -> Results:
    """Divides by a scale, rounds to even, adds the zero point and saturates to the integer type."""
    x, zero = c.input(0), c.optional(2)
    dtype = zero.dtype if zero is not None else _stated_type(c) or u8
    offset = None if zero is None else _spread(c, zero, x)
    return composites.quantize(c, x, _spread(c, c.input(1), x), offset, dtype, saturate=c.flag("saturate", True))


@translates("DequantizeLinear", limits="6-bit floats")
def dequantize_linear(c: Call) -> Results:
    """Subtracts the zero point and multiplies by a scale."""
    x, scale, zero = c.input(0), c.input(1), c.optional(2)
    offset = None if zero is None else _spread(c, zero, x)
    return composites.dequantize(c, x, _spread(c, scale, x), offset, _stated_type(c) or scale.dtype)


def _stated_type(c: Call) -> DType | None:
    code = c.integer("output_dtype", 0)
    return element_type(code, c.source) if code else None


def _spread(c: Call, v: Operand, x: Operand) -> Operand:
    """Returns a scale or a zero point broadcast to *x*, along the axis and by the blocks that the attributes give."""
    axis = 0 if composites.is_one_for_all(v) else c.axis(1, x.rank)
    return composites.broadcast_to_blocks(c, v, x, axis, c.integer("block_size", 0))


@translates("MatMulInteger")
def matmul_integer(c: Call) -> Results:
    """The product of integer matrices less their zero points, in 32 bits."""
    return composites.integer_matmul(c, c.input(0), c.input(1), c.optional(2), c.optional(3))


@translates("ConvInteger")
def conv_integer(c: Call) -> Results:
    """The convolution of integers less their zero points, in 32 bits."""
    return _convolved_integers(c, c.input(0), c.input(1), c.optional(2), c.optional(3), None)


def _convolved_integers(
    c: Call, x: Operand, w: Operand, x_zero: Operand | None, w_zero: Operand | None, bias: Operand | None
) -> Operand:
    offset = None if w_zero is None else composites.of_filters(c, w_zero, w.rank)
    return convolved(c, composites.centred(c, x, x_zero), composites.centred(c, w, offset), bias)


@translates("QLinearMatMul", limits=NO_SMALL_TYPES)
def qlinear_matmul(c: Call) -> Results:
    """The product of quantised matrices, quantised."""
    product = c.cast(composites.integer_matmul(c, c.input(0), c.input(3), c.input(2), c.input(5)), f32)
    scale = c.add("mul", c.cast(composites.column(c, c.input(1)), f32), c.cast(c.input(4), f32))
    scaled = c.add("mul", product, scale)
    return composites.quantize(c, scaled, c.cast(c.input(6), f32), c.input(7), c.input(7).dtype)


@translates("QLinearConv", limits=NO_SMALL_TYPES)
def qlinear_conv(c: Call) -> Results:
    """The convolution of quantised tensors, quantised."""
    return qlinear_convolved(c, c.input(0))


def qlinear_convolved(c: Call, x: Operand) -> Operand:
    """Returns the convolution of *x*, the node's first input with its channels after the batch, as the other inputs say."""
    w = c.input(3)
    sums = c.cast(_convolved_integers(c, x, w, c.input(2), c.input(5), c.optional(8)), f32)
    w_scale = composites.of_filters(c, c.input(4), x.rank - 1)
    scaled = c.add("mul", sums, c.add("mul", c.cast(c.input(1), f32), c.cast(w_scale, f32)))
    return composites.quantize(c, scaled, c.input(6), c.input(7), c.input(7).dtype)
