"""Rounding, signs, exponents, classification and the larger of two, for targets that lack them, and fmod."""

from __future__ import annotations

import math
from typing import Final

from weft.ir import Apply, Expr, eq, ne, select
from weft.lower.math.expansions import EXACT, Error, expansion
from weft.lower.math.kit import Kit

TF32_MANTISSA: Final = 10
"""The stored bits of tf32's significand."""


def _to_whole(kit: Kit, a: Expr) -> Expr:
    """Returns a non-negative *a* below 2^mantissa rounded to an integer, ties to even."""
    unit = 2.0**kit.format.mantissa
    return (a + unit) - unit


def _where_fractional(kit: Kit, x: Expr, magnitude: Expr) -> Expr:
    """Returns *magnitude* with the sign of *x*, or *x* itself where it is too large to have a fraction, or NaN."""
    return select(kit.abs(x) < 2.0**kit.format.mantissa, kit.with_sign(magnitude, kit.sign(x)), x)


@expansion("round_even", f32=EXACT, f64=EXACT)
def round_even(kit: Kit, x: Expr) -> Expr:
    """Returns the nearest integer, ties to even."""
    return _where_fractional(kit, x, _to_whole(kit, kit.abs(x)))


@expansion("trunc", f32=EXACT, f64=EXACT)
def trunc(kit: Kit, x: Expr) -> Expr:
    """Returns the integer part."""
    a = kit.abs(x)
    near = _to_whole(kit, a)
    return _where_fractional(kit, x, near - select(near > a, kit.of(1.0), kit.of(0.0)))


@expansion("floor", f32=EXACT, f64=EXACT)
def floor(kit: Kit, x: Expr) -> Expr:
    """Returns the largest integer that is not greater."""
    near = round_even(kit, x)
    return near - select(near > x, kit.of(1.0), kit.of(0.0))


@expansion("ceil", f32=EXACT, f64=EXACT)
def ceil(kit: Kit, x: Expr) -> Expr:
    """Returns the smallest integer that is not less."""
    return -floor(kit, -x)


@expansion("round_away", f32=EXACT, f64=EXACT)
def round_away(kit: Kit, x: Expr) -> Expr:
    """Returns the nearest integer, ties away from zero."""
    a = kit.abs(x)
    whole = Apply("trunc", (a,))
    return _where_fractional(kit, x, whole + select(a - whole < 0.5, kit.of(0.0), kit.of(1.0)))


@expansion("round_tf32", f32=EXACT, f64=EXACT)
def round_tf32(kit: Kit, x: Expr) -> Expr:
    """Returns *x* in as many significant bits as tf32 has, ties to even."""
    lost = kit.format.mantissa - TF32_MANTISSA
    last, bits = 1 << lost, kit.bits(x)
    near = (bits + (last // 2 - 1) + ((bits >> lost) & 1)) & ((1 << kit.format.word.bits) - last)
    return select(ne(x, x), kit.of(math.nan), kit.real(near))


@expansion("copysign", f32=EXACT, f64=EXACT)
def copysign(kit: Kit, x: Expr, y: Expr) -> Expr:
    """Returns the magnitude of *x* with the sign of *y*."""
    return kit.real((kit.bits(x) & (kit.sign_mask - 1)) | kit.sign(y))


@expansion("abs", f32=EXACT, f64=EXACT)
def absolute(kit: Kit, x: Expr) -> Expr:
    """Returns *x* without its sign bit."""
    return kit.real(kit.bits(x) & (kit.sign_mask - 1))


@expansion("rounded", f32=EXACT, f64=EXACT)
def rounded(kit: Kit, x: Expr) -> Expr:
    """Returns *x*: a compiler that does not reassociate has no need to be told."""
    return x


@expansion("is_nan", f32=EXACT, f64=EXACT)
def is_nan(kit: Kit, x: Expr) -> Expr:
    """Answers whether *x* is not a number."""
    return ne(x, x)


@expansion("is_inf", f32=EXACT, f64=EXACT)
def is_inf(kit: Kit, x: Expr) -> Expr:
    """Answers whether *x* is one of the infinities."""
    return eq(kit.abs(x), math.inf)


@expansion("fma")
def fma(kit: Kit, a: Expr, b: Expr, c: Expr) -> Expr:
    """Returns `a * b + c` rounded twice, the cheap form for a target without the instruction."""
    return a * b + c


@expansion("fmod", f32=EXACT, f64=EXACT)
def fmod(kit: Kit, x: Expr, y: Expr) -> Expr:
    """Returns the remainder of x / y with the sign of x; exact while |x / y| is below 2^33 (float64: 2^75).

    Long division with half a significand of quotient a step: each product of halves, and each remainder, is exact.
    """
    b = kit.abs(y)
    high = kit.head(b)
    low = b - high
    r = kit.abs(x)
    for _ in range(3):
        digits = kit.head(Apply("trunc", (r / b,)))
        r = kit.fma(-digits, low, kit.fma(-digits, high, r))
    r = kit.with_sign(select(r < 0.0, r + b, r), kit.sign(x))
    return select(eq(b, math.inf) & (kit.abs(x) < math.inf), x, r)


@expansion("ldexp", f32=Error(1.0, 1.0), f64=Error(1.0, 1.0))
def ldexp(kit: Kit, x: Expr, n: Expr) -> Expr:
    """Returns x * 2^n for a whole number n, by three factors that are all in range; a denormal result may be rounded twice."""
    bound = 3.0 * (kit.format.bias - 1)
    n = kit.at_least(kit.at_most(n, bound), -bound)
    third = kit.shifted(n, 1 / 3)
    rest = n - 2.0 * kit.unshifted(third)
    factor = kit.power_of_two(third)
    return x * factor * factor * kit.power_of_two(rest + kit.shifter)


@expansion("max_number", f32=EXACT, f64=EXACT)
def max_number(_: Kit, a: Expr, b: Expr) -> Expr:
    """Returns the larger of *a* and *b*: *a* where one is NaN, as the extremum of many machines' instructions."""
    return select(b > a, b, a)
