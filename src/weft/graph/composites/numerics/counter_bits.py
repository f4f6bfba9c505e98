"""Random bits that are functions of a key and of counters, all of them tensors: Threefry and Philox (Salmon et al., 2011)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from weft.graph.builder.builder import Builder
from weft.graph.builder.partial_evaluator import Operand
from weft.support.dtypes import u32, u64
from weft.support.philox import WORD

_PARITY: Final = 0x1BD11BDA
_ROTATIONS: Final = ((13, 15, 26, 6), (17, 29, 16, 24))


def halves(b: Builder, x: Operand) -> tuple[Operand, Operand]:
    """Returns the lower and the upper 32 bits of u64."""
    upper = b.add("shift_right", x, b.scalar(32, u64))
    return b.cast(b.add("bit_and", x, b.scalar(WORD, u64)), u32), b.cast(upper, u32)


def joined(b: Builder, low: Operand, high: Operand) -> Operand:
    """Returns u64 of lower and upper 32 bits."""
    return b.add("bit_or", b.add("shift_left", b.cast(high, u64), b.scalar(32, u64)), b.cast(low, u64))


def threefry(b: Builder, key: Sequence[Operand], counter: Sequence[Operand]) -> list[Operand]:
    """Returns the two words of Threefry2x32-20 for each *counter* of two words."""
    keys = [*key, b.add("bit_xor", b.add("bit_xor", *key), b.scalar(_PARITY, u32))]
    left, right = (b.add("add", c, k) for c, k in zip(counter, keys, strict=False))
    for n in range(5):
        for turn in _ROTATIONS[n % 2]:
            left = b.add("add", left, right)
            up, down = (
                b.add("shift_left", right, b.scalar(turn, u32)),
                b.add("shift_right", right, b.scalar(32 - turn, u32)),
            )
            right = b.add("bit_xor", b.add("bit_or", up, down), left)
        left = b.add("add", left, keys[(n + 1) % 3])
        right = b.add("add", right, b.add("add", keys[(n + 2) % 3], b.scalar(n + 1, u32)))
    return [left, right]


class PhiloxWords:
    """The arithmetic of Philox on tensors of u32."""

    def __init__(self, builder: Builder) -> None:
        self.builder = builder

    def product(self, x: Operand, factor: int) -> tuple[Operand, Operand]:
        """Returns the lower and the upper word of a product of 64 bits."""
        b = self.builder
        return halves(b, b.add("mul", b.cast(x, u64), b.scalar(factor, u64)))

    def xor(self, a: Operand, b: Operand) -> Operand:
        """Returns the bits in which *a* and *b* differ."""
        return self.builder.add("bit_xor", a, b)

    def plus(self, x: Operand, number: int) -> Operand:
        """Returns a sum modulo 2^32."""
        return self.builder.add("add", x, self.builder.scalar(number, u32))
