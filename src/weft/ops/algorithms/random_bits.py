"""Random bits that are a function of a seed and of a position: each element is computed alone, in any order, always the same."""

from __future__ import annotations

from weft.ir import BitAnd, BitXor, Cast, Expr, ShiftRight, const
from weft.ops.registry import operator
from weft.ops.shapes import flatten_index, sized
from weft.support.dtypes import u32, u64
from weft.support.errors import TypeMismatch
from weft.support.philox import WORD, philox
from weft.te import Tensor, compute


@operator("random_bits", reads_bits=True)
def random_bits(seed: Tensor, *, shape: tuple[Expr | int, ...], stream: int = 0, word: int = 0) -> Tensor:
    """Random u32 of *shape*, by Philox4x32-10 (Salmon et al., "Parallel random numbers: as easy as 1, 2, 3", 2011).

    The key is *seed*, a number of 64 bits; the counter is an element's row-major position and *stream*, so that the streams of
    one seed are independent. Each counter gives four words, of which an element is *word*.
    """
    if seed.rank or seed.dtype.bits != 64 or not seed.dtype.is_int:
        raise TypeMismatch(
            f"random_bits takes for a seed one integer of 64 bits, not {seed.rank} dimensions of {seed.dtype}"
        )
    sizes = sized(*shape)

    def element(*i: Expr) -> Expr:
        counter = [*_halves(flatten_index(i, sizes)), const(stream, u32), const(0, u32)]
        return philox(_Words(), counter, _halves(seed[()]))[word]

    return compute(sizes, element, "random_bits", dtype=u32)


class _Words:
    """The arithmetic of Philox on expressions of u32."""

    def product(self, x: Expr, factor: int) -> tuple[Expr, Expr]:
        return _halves(Cast(x, u64) * const(factor, u64))

    def xor(self, a: Expr, b: Expr) -> Expr:
        return BitXor(a, b)

    def plus(self, x: Expr, number: int) -> Expr:
        return x + const(number, u32)


def _halves(x: Expr) -> tuple[Expr, Expr]:
    """Returns the lower and the upper 32 bits of an integer of 64."""
    low = BitAnd(x, const(WORD, x.dtype))
    high = ShiftRight(x, const(32, x.dtype))
    return Cast(low, u32), Cast(BitAnd(high, const(WORD, x.dtype)), u32)
