"""Philox4x32-10 for words of any kind: expressions of one element, or operands of a graph.

Salmon, Moraes, Dror, Shaw, "Parallel random numbers: as easy as 1, 2, 3", SC 2011.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, Protocol, TypeVar

WORD: Final = 0xFFFFFFFF
"""The bits of a word."""

_FACTORS: Final = (0xD2511F53, 0xCD9E8D57)
_STEPS: Final = (0x9E3779B9, 0xBB67AE85)
_ROUNDS: Final = 10

W = TypeVar("W")


class Words(Protocol[W]):
    """Arithmetic on words of 32 bits."""

    def product(self, x: W, factor: int) -> tuple[W, W]:
        """Returns the lower and the upper word of a product of 64 bits."""
        ...

    def xor(self, a: W, b: W) -> W:
        """Returns the bits in which *a* and *b* differ."""
        ...

    def plus(self, x: W, number: int) -> W:
        """Returns a sum modulo 2^32."""
        ...


def philox(words: Words[W], counter: Sequence[W], key: Sequence[W]) -> list[W]:
    """Returns the four random words of a *counter* of four words, by a *key* of two."""
    a, b, c, d = counter
    for n in range(_ROUNDS):
        first, second = (words.plus(k, n * step & WORD) for k, step in zip(key, _STEPS, strict=True))
        (low, high), (other_low, other_high) = (words.product(x, f) for x, f in zip((a, c), _FACTORS, strict=True))
        a, b = words.xor(words.xor(other_high, b), first), other_low
        c, d = words.xor(words.xor(high, d), second), low
    return [a, b, c, d]
