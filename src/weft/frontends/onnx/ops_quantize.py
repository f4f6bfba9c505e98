"""Quantisation: to 8-bit integers and back, and products of quantised tensors."""

from __future__ import annotations

from weft.frontends.onnx.call import Call, Operand, Results
from weft.frontends.onnx.ops_nn import convolved
from weft.frontends.onnx.registry import translates
from weft.frontends.onnx.tensors import element_type
from weft.ir.expr import ONE, Const
from weft.support.dtypes import DType, f32, i32, u8
from weft.te import is_narrow

NO_SMALL_TYPES = "4-bit integers, 8-bit floats"


@translates("QuantizeLinear", limits=NO_SMALL_TYPES)
def quantize_linear(c: Call) -> Results:
    """Divides by a scale, rounds to even, adds the zero point and keeps what the integer type can hold."""
    x, zero = c.input(0), c.optional(2)
    stated = element_type(c.integer("output_dtype", 0), c.source) if c.integer("output_dtype", 0) else None
    dtype = zero.dtype if zero is not None else stated or u8
    return quantized(c, x, _spread(c, c.input(1), x), None if zero is None else _spread(c, zero, x), dtype)


def quantized(c: Call, x: Operand, scale: Operand, zero: Operand | None, dtype: DType) -> Operand:
    """Returns *x* quantised; *scale* and *zero* broadcast to it."""
    low, high = dtype.int_range
    steps = c.cast(c.add("round", c.add("div", x, c.cast(scale, x.dtype))), f32)
    moved = steps if zero is None else c.add("add", steps, c.cast(zero, f32))
    return c.cast(c.add("clip", moved, c.scalar(low, f32), c.scalar(high, f32)), dtype)


@translates("DequantizeLinear", limits=NO_SMALL_TYPES)
def dequantize_linear(c: Call) -> Results:
    """Subtracts the zero point and multiplies by a scale."""
    x, scale, zero = c.input(0), c.input(1), c.optional(2)
    wide = centred(c, x, None if zero is None else _spread(c, zero, x))
    stated = c.integer("output_dtype", 0)
    dtype = element_type(stated, c.source) if stated else scale.dtype
    exact = f32 if is_narrow(dtype) else dtype  # 32-bit integers may be beyond what narrower floats hold
    return c.cast(c.add("mul", c.cast(wide, exact), c.cast(_spread(c, scale, x), exact)), dtype)


def centred(c: Call, x: Operand, zero: Operand | None) -> Operand:
    """Returns *x* as 32-bit integers, less its zero point."""
    wide = c.cast(x, i32)
    return wide if zero is None else c.add("sub", wide, c.cast(zero, i32))


def _spread(c: Call, v: Operand, x: Operand) -> Operand:
    """Returns a scale or a zero point broadcast to *x*: one for all, one for each index of an axis, or one for each block."""
    if v.rank == 0 or (v.rank == 1 and v.shape[0] is ONE):
        return c.reshape(v, [])
    axis = c.axis(1, x.rank)
    if v.rank == 1:
        return c.reshape(v, [*v.shape, *[1] * (x.rank - axis - 1)])
    block = c.integer("block_size", 0)
    if not block:
        size, count = x.shape[axis], v.shape[axis]
        if not isinstance(size, Const) or not isinstance(count, Const):
            c.fail("blocks along an axis of symbolic size are not supported")
        block = -(-int(size.value) // int(count.value))
    lead, tail = v.shape[: axis + 1], v.shape[axis + 1 :]
    wide = c.add("expand", c.reshape(v, [*lead, 1, *tail]), shape=(*lead, block, *tail))
    whole = c.reshape(wide, [*lead[:-1], lead[-1] * block, *tail])
    return c.add("slice", whole, starts=(0,), ends=(x.shape[axis],), axes=(axis,), steps=(1,))


def _rows(c: Call, zero: Operand | None) -> Operand | None:
    """Returns the zero points of a left matrix, one a row, as a column."""
    return zero if zero is None or zero.rank != 1 or zero.shape[0] is ONE else c.reshape(zero, [*zero.shape, 1])


@translates("MatMulInteger")
def matmul_integer(c: Call) -> Results:
    """The product of integer matrices less their zero points, in 32 bits."""
    return c.add("matmul", centred(c, c.input(0), _rows(c, c.optional(2))), centred(c, c.input(1), c.optional(3)))


@translates("ConvInteger")
def conv_integer(c: Call) -> Results:
    """The convolution of integers less their zero points, in 32 bits."""
    return _convolved_integers(c, c.input(0), c.input(1), c.optional(2), c.optional(3), None)


def _convolved_integers(
    c: Call, x: Operand, w: Operand, x_zero: Operand | None, w_zero: Operand | None, bias: Operand | None
) -> Operand:
    if w_zero is not None and w_zero.rank == 1 and w_zero.shape[0] is not ONE:
        w_zero = c.reshape(w_zero, [*w_zero.shape, *[1] * (w.rank - 1)])
    return convolved(c, centred(c, x, x_zero), centred(c, w, w_zero), bias)


@translates("QLinearMatMul", limits=NO_SMALL_TYPES)
def qlinear_matmul(c: Call) -> Results:
    """The product of quantised matrices, quantised."""
    a, b = centred(c, c.input(0), _rows(c, c.input(2))), centred(c, c.input(3), c.input(5))
    product = c.cast(c.add("matmul", a, b), f32)
    scale_a = _rows(c, c.input(1)) or c.input(1)
    scale = c.add("mul", c.cast(scale_a, f32), c.cast(c.input(4), f32))
    return quantized(c, c.add("mul", product, scale), c.cast(c.input(6), f32), c.input(7), c.input(7).dtype)


@translates("QLinearConv", limits=NO_SMALL_TYPES)
def qlinear_conv(c: Call) -> Results:
    """The convolution of quantised tensors, quantised."""
    x, w = c.input(0), c.input(3)
    sums = c.cast(_convolved_integers(c, x, w, c.input(2), c.input(5), c.optional(8)), f32)
    w_scale = c.input(4)
    if w_scale.rank == 1 and w_scale.shape[0] is not ONE:
        w_scale = c.reshape(w_scale, [*w_scale.shape, *[1] * (x.rank - 2)])
    scaled = c.add("mul", sums, c.add("mul", c.cast(c.input(1), f32), c.cast(w_scale, f32)))
    return quantized(c, scaled, c.input(6), c.input(7), c.input(7).dtype)
