"""Unsigned integers of few bits, several of them in a byte."""

from __future__ import annotations

from weft.graph.builder.builder import Builder
from weft.graph.builder.partial_evaluator import Operand
from weft.graph.builder.shape_arithmetic import total
from weft.graph.composites.sequences import stack
from weft.support.dtypes import u8


def unpack(b: Builder, x: Operand, bits: int) -> Operand:
    """Returns the integers of *bits* (1, 2, 4 or 8) in the bytes of *x* along its last dimension, the lowest bits first.

    u8[n, 8] of 4 bits     becomes     u8[n, 16]
    """
    if bits == 8:
        return x
    each, mask = 8 // bits, b.scalar((1 << bits) - 1, u8)
    parts = [b.add("bit_and", b.add("shift_right", x, b.scalar(i * bits, u8)), mask) for i in range(each)]
    return b.reshape(stack(b, parts, x.rank), [*x.shape[:-1], total([x.shape[-1], each])])
