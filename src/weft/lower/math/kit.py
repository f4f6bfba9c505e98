"""The building blocks of expansions: constants, polynomials and bit patterns of one float type.

An expansion must turn into straight vector code on every target, so it uses arithmetic, comparisons, selects and bit
tricks alone: no branches, no table look-ups, no conversions between widths.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from weft.ir import Apply, Expr, ExprLike, Reinterpret, as_expr, cast, const, eq, select
from weft.support.dtypes import DType, f32, f64, u32, u64
from weft.support.errors import LoweringError

Coefficients = Mapping[DType, Sequence[float]]
"""A polynomial for each float type, lowest degree first.

All of them are minimax fits (Remez exchange in 160-bit arithmetic), rounded to the type one coefficient at a time from
the lowest degree up; the remaining coefficients are refitted after each.
"""


@dataclass(frozen=True)
class Format:
    """Where the fields of an IEEE 754 binary format lie, and the unsigned type of its bits."""

    mantissa: int  # bits stored, without the implicit one
    bias: int
    word: DType
    head: int  # mask that keeps the upper half of the significand: the product of two such heads is exact


FORMATS: Final = {
    f32: Format(23, 127, u32, 0xFFFF_F000),
    f64: Format(52, 1023, u64, 0xFFFF_FFFF_F800_0000),
}


class Kit:
    """Builds the expressions of one expansion in the float type *dtype*, scalar or vector.

    *fused* says that the target multiplies and adds with a single rounding; without it `fma` rounds twice. *scales* says that it
    multiplies by a power of two as such, with whatever exponent: it has `ldexp`.
    """

    def __init__(self, dtype: DType, *, fused: bool, scales: bool = False) -> None:
        if dtype.element not in FORMATS:
            raise LoweringError(f"mathematical functions are expanded in f32 and f64, not in {dtype}")
        self.dtype = dtype
        self.element = dtype.element
        self.fused = fused
        self.scales = scales
        self.format = FORMATS[self.element]
        self.word = self.format.word.with_lanes(dtype.lanes)

    @property
    def double(self) -> bool:
        """Whether the type is float64."""
        return self.element is f64

    @property
    def sign_mask(self) -> int:
        """The sign bit."""
        return 1 << (self.format.word.bits - 1)

    @property
    def mantissa_mask(self) -> int:
        """The stored bits of the significand."""
        return (1 << self.format.mantissa) - 1

    @property
    def smallest_normal(self) -> float:
        """The smallest positive number that is not denormal."""
        return 2.0 ** (1 - self.format.bias)

    def of(self, value: float) -> Expr:
        """Returns *value* as a constant, rounded to the type."""
        return const(value, self.dtype)

    def pick(self, single: float, double: float) -> float:
        """Returns the number that goes with the type."""
        return double if self.double else single

    def fma(self, a: Expr, b: ExprLike, c: ExprLike) -> Expr:
        """Returns `a * b + c`, rounded once where the target can."""
        right, addend = as_expr(b, self.dtype), as_expr(c, self.dtype)
        return Apply("fma", (a, right, addend)) if self.fused else a * right + addend

    def horner(self, x: Expr, coefficients: Coefficients) -> Expr:
        """Returns the polynomial in *x*, from the highest degree down."""
        *lower, top = coefficients[self.element]
        result = self.of(top)
        for c in reversed(lower):
            result = self.fma(result, x, c)
        return result

    def bits(self, x: Expr) -> Expr:
        """Returns the bit pattern of *x*."""
        return Reinterpret(x, self.word)

    def real(self, bits: Expr) -> Expr:
        """Returns the number with the given bit pattern."""
        return Reinterpret(bits, self.dtype)

    def real_of(self, word: Expr) -> Expr:
        """Returns the number that an unsigned word is, rounded to the type."""
        return cast(word, self.element)

    def pattern(self, value: float) -> int:
        """Returns the bit pattern of a power of two, as a Python integer."""
        mantissa, exponent = _split_power_of_two(value)
        if mantissa != 1.0:
            raise ValueError(f"{value!r} is not a power of two")
        return (exponent + self.format.bias) << self.format.mantissa

    def head(self, x: Expr) -> Expr:
        """Returns *x* cut to the upper half of its significand."""
        return self.real(self.bits(x) & self.format.head)

    def abs(self, x: Expr) -> Expr:
        """Returns the absolute value."""
        return Apply("abs", (x,))

    def sqrt(self, x: Expr) -> Expr:
        """Returns the square root."""
        return Apply("sqrt", (x,))

    def sign(self, x: Expr) -> Expr:
        """Returns the sign bit of *x* alone."""
        return self.bits(x) & self.sign_mask

    def with_sign(self, magnitude: Expr, sign: Expr) -> Expr:
        """Returns a non-negative *magnitude* with the given sign bit."""
        return self.real(self.bits(magnitude) | sign)

    def at_most(self, x: Expr, bound: float) -> Expr:
        """Returns *x* or, where it is greater, *bound*; NaN stays."""
        return select(x > bound, self.of(bound), x)

    def at_least(self, x: Expr, bound: float) -> Expr:
        """Returns *x* or, where it is less, *bound*; NaN stays."""
        return select(x < bound, self.of(bound), x)

    def keep_zero(self, x: Expr, y: Expr) -> Expr:
        """Returns *y*, but *x* itself where that is a zero, so that its sign is kept."""
        return select(eq(x, 0.0), x, y)

    @property
    def shifter(self) -> float:
        """1.5 * 2^mantissa: adding it rounds to an integer, which then stands in the lowest bits of the sum."""
        return 1.5 * 2.0**self.format.mantissa

    @property
    def biased_shifter(self) -> float:
        """The shifter with the bias of exponents added: the integer in the lowest bits is an exponent as it is stored."""
        return self.shifter + self.format.bias

    def power_of_biased(self, shifted: Expr) -> Expr:
        """Returns 2^n for an exponent n of a normal number that was rounded by `biased_shifter`; zero for the one below those."""
        return self.real(self.bits(shifted) << self.format.mantissa)

    def shifted(self, x: Expr, scale: float, offset: float = 0.0) -> Expr:
        """Returns `shifter + round(x * scale + offset)`; good for results below 2^(mantissa - 1)."""
        if offset:
            return self.fma(x, scale, offset) + self.shifter
        return self.fma(x, scale, self.shifter)

    def unshifted(self, shifted: Expr) -> Expr:
        """Returns the rounded number in the result of `shifted`."""
        return shifted - self.shifter

    def power_of_two(self, shifted: Expr, offset: int = 0) -> Expr:
        """Returns 2^(n + offset) for the n in the result of `shifted`; the exponent must be a normal number's."""
        one = self.format.bias + offset
        return self.real((self.bits(shifted) << self.format.mantissa) + (one << self.format.mantissa))

    def scaled(self, x: Expr, shifted: Expr, half: Expr) -> Expr:
        """Returns x * 2^n for the n in *shifted*, with *half* of it in another, so that no factor is out of range."""
        if self.scales:
            return Apply("ldexp", (x, self.unshifted(shifted)))
        rest = self.real(self.bits(shifted) - self.bits(half))
        return x * self.power_of_two(half) * self.power_of_two(rest)

    def subtract_multiple(self, x: Expr, n: Expr, parts: Sequence[float]) -> Expr:
        """Returns `x - n * c`, with c given as a sum of *parts* from the largest down (Cody and Waite, 1980)."""
        for part in parts:
            x = self.fma(n, -part, x)
        return x


def _split_power_of_two(value: float) -> tuple[float, int]:
    digits, _, exponent = value.hex().partition("p")
    return float.fromhex(digits), int(exponent)
