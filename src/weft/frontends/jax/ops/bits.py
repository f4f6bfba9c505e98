"""Bits of integers, counted."""

from __future__ import annotations

from weft.frontends.jax.call import AGAIN, Call
from weft.frontends.jax.registry import translates
from weft.graph.builder import Builder, Operand
from weft.support.dtypes import SCALARS


@translates("popcnt")
def popcnt(c: Call) -> Operand:
    """How many bits of each element are set."""
    x = c.operand(0)
    return c.add("bit_cast", _count(c, _unsigned(c, x)), dtype=x.dtype)


@translates("count_leading_zeros")
def count_leading_zeros(c: Call) -> Operand:
    """How many bits of each element are not set before the first that is."""
    x = c.operand(0)
    filled = _unsigned(c, x)
    for k in _powers(x.dtype.bits):
        filled = c.add("bit_or", filled, c.add("shift_right", filled, c.scalar(k, filled.dtype)))
    zeros = c.add("sub", c.scalar(x.dtype.bits, filled.dtype), _count(c, filled))
    return c.add("bit_cast", zeros, dtype=x.dtype)


def _unsigned(c: Call, x: Operand) -> Operand:
    if not x.dtype.is_int or x.dtype.bits not in (8, 16, 32, 64):
        c.fail(f"it counts bits of {x!r}", AGAIN)
    return c.add("bit_cast", x, dtype=SCALARS[f"u{x.dtype.bits}"])


def _count(b: Builder, x: Operand) -> Operand:
    """Returns how many bits are set: sums of pairs, then of pairs of these (Warren, "Hacker's Delight", section 5-1)."""
    bits = x.dtype.bits
    for k in _powers(bits):
        mask = b.scalar(sum(((1 << k) - 1) << s for s in range(0, bits, 2 * k)), x.dtype)
        upper = b.add("bit_and", b.add("shift_right", x, b.scalar(k, x.dtype)), mask)
        x = b.add("add", b.add("bit_and", x, mask), upper)
    return x


def _powers(bits: int) -> list[int]:
    """Returns 1, 2, 4, ... below a word's *bits*."""
    return [1 << k for k in range(bits.bit_length() - 1)]
