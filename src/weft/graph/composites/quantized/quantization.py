"""Quantised tensors: integers that stand for `(q - zero) * scale`, and products of them."""

from __future__ import annotations

from weft.graph.builder.builder import Builder
from weft.graph.builder.partial_evaluator import Operand
from weft.ir import ONE, Const
from weft.support.dtypes import DType, f32, i8, i32, u8
from weft.te import is_narrow


def quantize(
    b: Builder, x: Operand, scale: Operand, zero: Operand | None, dtype: DType, *, saturate: bool = True
) -> Operand:
    """Divides by *scale*, rounds to even, adds *zero* and saturates to *dtype*; *scale* and *zero* broadcast to *x*.

    Of floats of 8 and 4 bits, it rounds to the values of *dtype*, and an infinity is its largest number if it is to *saturate*.
    """
    if dtype.holds_floats:
        parts = b.add("div", x, b.cast(scale, x.dtype))
        return b.cast(parts if zero is None else b.add("add", parts, b.cast(zero, x.dtype)), dtype, saturate=saturate)
    return requantize(b, b.add("div", x, b.cast(scale, x.dtype)), zero, dtype)


def requantize(b: Builder, scaled: Operand, zero: Operand | None, dtype: DType) -> Operand:
    """Rounds numbers in units of the result's scale to even, adds *zero* and saturates to *dtype*."""
    steps = b.cast(b.add("round", scaled), f32)
    return saturate_to(b, steps if zero is None else b.add("add", steps, b.cast(zero, f32)), dtype)


def saturate_to(b: Builder, whole: Operand, dtype: DType) -> Operand:
    """Returns whole numbers, given as f32, as integers of *dtype*: those out of its range become its bounds."""
    low, high = dtype.int_range
    return b.cast(b.add("clip", whole, b.scalar(low, f32), b.scalar(high, f32)), dtype)


def dequantize(b: Builder, x: Operand, scale: Operand, zero: Operand | None, dtype: DType) -> Operand:
    """Subtracts *zero* and multiplies by *scale*, both of which broadcast to *x*, as *dtype*."""
    exact = f32 if is_narrow(dtype) else dtype  # 32-bit integers may be beyond the range of narrower floats
    return b.cast(b.add("mul", b.cast(centred(b, x, zero), exact), b.cast(scale, exact)), dtype)


def centred(b: Builder, x: Operand, zero: Operand | None) -> Operand:
    """Returns *x* as 32-bit integers, or of small floats as float32, less its zero point.

    Weights stay bytes of the graph, however few they are: its passes choose whether they are multiplied as such.
    """
    if x.rank > 1 and x.dtype in (u8, i8):
        x = b.kept(x)
    dtype = f32 if x.dtype.holds_floats else i32
    wide = b.cast(x, dtype)
    return wide if zero is None else b.add("sub", wide, b.cast(zero, dtype))


def is_one_for_all(v: Operand) -> bool:
    """Tells whether a scale or a zero point is a single number."""
    return v.rank == 0 or (v.rank == 1 and v.shape[0] is ONE)


def broadcast_to_blocks(b: Builder, v: Operand, x: Operand, axis: int, block: int = 0) -> Operand:
    """Returns a scale or a zero point broadcast to *x*: one for all, one for each index of *axis*, or one for each block of it.

    A *block* of 0 is computed from the sizes of both tensors; raises `ModelError` where these are symbolic.
    """
    if is_one_for_all(v):
        return b.reshape(v, [])
    if v.rank == 1:
        return b.reshape(v, [*v.shape, *[1] * (x.rank - axis - 1)])
    if not block:
        size, count = x.shape[axis], v.shape[axis]
        if not isinstance(size, Const) or not isinstance(count, Const):
            b.fail("blocks along an axis of symbolic size are not supported")
        block = -(-int(size.value) // int(count.value))
    lead, tail = v.shape[: axis + 1], v.shape[axis + 1 :]
    wide = b.add("expand", b.reshape(v, [*lead, 1, *tail]), shape=(*lead, block, *tail))
    whole = b.reshape(wide, [*lead[:-1], lead[-1] * block, *tail])
    return b.add("slice", whole, starts=(0,), ends=(x.shape[axis],), axes=(axis,), steps=(1,))


def column(b: Builder, v: Operand) -> Operand:
    """Returns the per-row scales or zero points of a left matrix as a column."""
    return v if v.rank != 1 or v.shape[0] is ONE else b.reshape(v, [*v.shape, 1])


def of_filters(b: Builder, v: Operand, rank: int) -> Operand:
    """Returns the scales or zero points of filters, one a filter, broadcast along the *rank* - 1 dimensions after them."""
    return v if v.rank != 1 or v.shape[0] is ONE else b.reshape(v, [*v.shape, *[1] * (rank - 1)])


def integer_matmul(b: Builder, x: Operand, y: Operand, x_zero: Operand | None, y_zero: Operand | None) -> Operand:
    """Returns the product of integer matrices less their zero points, in 32 bits; *x* has one zero point, or one a row."""
    rows = None if x_zero is None else column(b, x_zero)
    return b.add("matmul", centred(b, x, rows), centred(b, y, y_zero))
