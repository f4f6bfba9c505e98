"""Products with weights of few bits, each block of which has a scale and a zero point: the kernels take the weights apart.

    y[m, n] = sum over k of a[m, k] * (field(q, n, k) - zero[n, k // size]) * scale[n, k // size]

A byte holds 8 / bits weights that follow one another along the reduction, the first in its lowest bits.
"""

from __future__ import annotations

from weft.ir import Expr, cast, const, select
from weft.ops.blocked_layouts import columns_of_panels
from weft.ops.registry import operator
from weft.ops.shapes import at_broadcast, check_broadcasts, check_shape, same_size, show_shape, sized
from weft.support.dtypes import f32, i32, u8
from weft.support.errors import TypeMismatch
from weft.te import Tensor, compute, reduce_axis, sum_

BYTE = 8
"""Bits of a byte."""


@operator("matmul_bits")
def matmul_bits(a: Tensor, q: Tensor, scale: Tensor, zero: Tensor | None = None, *, bits: int) -> Tensor:
    """[..., K] times weights q [N, K/size, size * bits / 8] of *bits* bits to [..., N]; scale and zero are [N, K/size].

    Without *zero*, the middle of the range of *bits* stands for zero. K is a whole number of blocks.
    """
    size = _block_size(a, q, bits, q.shape[-2], q.shape[-1])
    for what, v in (("scale", scale), ("zero point", zero)):
        if v is not None:
            check_shape(f"matmul_bits: the {what}", v.shape, q.shape[:2])
    kb, kk = reduce_axis(q.shape[1], "kb"), reduce_axis(size, "kk")
    each = BYTE // bits

    def contraction(*i: Expr) -> object:
        n = i[-1]
        field = _field(q[n, kb, kk // each], kk % each, bits)
        weight = _weight(field, scale[n, kb], None if zero is None else zero[n, kb], bits)
        return sum_(cast(a[(*i[:-1], kb * size + kk)], f32) * weight, [kb, kk])

    return compute((*a.shape[:-1], q.shape[0]), contraction, "matmul_bits")


@operator("matmul_bits_packed")
def matmul_bits_packed(
    a: Tensor, p: Tensor, scale: Tensor, zero: Tensor | None = None, *, bits: int, columns: int, by_panels: bool = False
) -> Tensor:
    """`matmul_bits` on panels of weights p [N/nr, K/size, size * bits / 8, nr]; scale and zero are [N/nr, K/size, nr].

    Weights are taken apart where they are multiplied, or *by_panels*: a whole panel before it is multiplied by all rows.
    """
    size = _block_size(a, p, bits, p.shape[1], p.shape[2])
    block, each = p.shape[-1], BYTE // bits
    kb, b, field = reduce_axis(p.shape[1], "kb"), reduce_axis(p.shape[2], "b"), reduce_axis(each, "field")
    kk, has_rows = reduce_axis(size, "kk"), a.rank > 1

    def weight(o: Expr, k0: Expr, k1: Expr, j: Expr) -> Expr:
        whole = _field(p[o, k0, k1 // each, j], k1 % each, bits)
        return _weight(whole, scale[o, k0, j], None if zero is None else zero[o, k0, j], bits)

    panels = compute((*p.shape[:2], size, block), weight, "panel")

    def on_panels(*i: Expr) -> object:
        *lead, o, j = i
        left = a[(*(lead if has_rows else ()), kb * size + kk)]
        return sum_(cast(left, f32) * panels[o, kb, kk, j], [kb, kk])

    def contraction(*i: Expr) -> object:
        *lead, o, j = i
        whole = _field(p[o, kb, b, j], field, bits)
        weight = _weight(whole, scale[o, kb, j], None if zero is None else zero[o, kb, j], bits)
        left = a[(*(lead if has_rows else ()), kb * size + b * each + field)]
        return sum_(cast(left, f32) * weight, [kb, b, field])

    rows = a.shape[:-1] if has_rows else sized(1)
    made = compute((*rows, p.shape[0], block), on_panels if by_panels else contraction, "matmul_bits_packed")
    return columns_of_panels(made, columns, "matmul_bits_out", has_rows=has_rows)


@operator("dequantize_weight", prepares=True)
def dequantize_weight(q: Tensor, scale: Tensor, zero: Tensor | None = None) -> Tensor:
    """`(q - zero) * scale` of bytes, as float32; scale and zero point broadcast to *q*."""

    def weight(*i: Expr) -> Expr:
        whole = cast(q[i], i32)
        centred = whole if zero is None else whole - cast(at_broadcast(zero, i, q.shape), i32)
        return cast(centred, f32) * cast(at_broadcast(scale, i, q.shape), f32)

    for what, v in (("scale", scale), ("zero point", zero)):
        if v is not None:
            check_broadcasts(f"dequantize_weight: the {what}", v.shape, q.shape)
    return compute(q.shape, weight, "dequantize_weight", dtype=f32)


@operator("pack_bits", prepares=True)
def pack_bits(q: Tensor, *, block: int) -> Tensor:
    """[N, *S] to [N/block, *S, block], filled up with zeros: a panel of columns side by side."""
    shape = sized(-(-q.shape[0] // block), *q.shape[1:], block)

    def packed(*i: Expr) -> Expr:
        n = i[0] * block + i[-1]
        return select(n < q.shape[0], q[(n, *i[1:-1])], const(0, q.dtype))

    return compute(shape, packed, "pack_bits", dtype=q.dtype)


def _field(byte: Expr, number: Expr, bits: int) -> Expr:
    """Returns a weight of *bits* bits in a byte as a float."""
    wide = cast(byte, i32)
    if bits < BYTE:
        wide = (wide >> cast(number * bits, i32)) & const((1 << bits) - 1, i32)
    return cast(wide, f32)


def _weight(whole: Expr, scale: Expr, zero: Expr | None, bits: int) -> Expr:
    """Returns `(whole - zero) * scale`; a zero point that is a power of two is scaled apart, without error, once for a block."""
    step = cast(scale, f32)
    return whole * step - const(1 << (bits - 1), f32) * step if zero is None else (whole - cast(zero, f32)) * step


def _block_size(a: Tensor, q: Tensor, bits: int, blocks: Expr, nbytes: Expr) -> Expr:
    """Returns the weights of a block; raises `TypeMismatch` where operands do not fit."""
    if q.dtype is not u8 or bits not in (1, 2, 4, 8):
        raise TypeMismatch(f"weights of few bits are given in bytes (u8), in 1, 2, 4 or 8 of their bits, not {q.dtype}")
    size = nbytes * (BYTE // bits)
    if a.rank < 1 or not same_size(a.shape[-1], blocks * size):
        raise TypeMismatch(f"{show_shape(a.shape)} has not the columns of weights {show_shape(q.shape)} of {bits} bits")
    return sized(size)[0]
