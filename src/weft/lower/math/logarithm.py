"""log, log2 and log1p: the exponent times ln 2 plus a polynomial in the significand."""

from __future__ import annotations

import math
from typing import Final

from weft.ir import Expr, eq, select
from weft.lower.math.expansions import Error, expansion
from weft.lower.math.exponential import LN_2
from weft.lower.math.kit import Coefficients, Kit
from weft.support.dtypes import f32, f64

# (log(1 + f) - f + f^2 / 2) / f^3 for sqrt(1/2) <= 1 + f <= sqrt(2), relative error of the logarithm 2^-27.3
LOG: Coefficients = {
    f32: (0.3333333, -0.25000823, 0.2000126, -0.16623323, 0.1420096, -0.13159724, 0.12767318, -0.076431885),
}

# (2 atanh(s) / s - 2) / s^2 in s^2, for s = f / (2 + f); relative error 2^-65
LOG_RATIO: Coefficients = {
    f64: (
        0.6666666666666666,
        0.4000000000000495,
        0.2857142856922757,
        0.22222222660026342,
        0.1818177246691478,
        0.1538730185711917,
        0.13244135946418115,
        0.1331420432231433,
    ),
}

LOG2_E: Final = {f32: (1.442138671875, 0.0005563692), f64: (1.4426950365304947, 4.3584687174185184e-09)}
"""log2(e) as a head whose product with another head is exact, and the rest."""

_SQRT_HALF: Final = {f32: 0x3F35_04F3, f64: 0x3FE6_A09E_667F_3BCD}


def split_exponent(kit: Kit, x: Expr) -> tuple[Expr, Expr]:
    """Returns (k, m) with x = 2^k m and sqrt(1/2) <= m < sqrt(2), for a positive finite x, denormal or not."""
    f = kit.format
    lift = f.mantissa + 2
    denormal = x < kit.smallest_normal
    x = select(denormal, x * 2.0**lift, x)
    root = _SQRT_HALF[kit.element]
    # the biased exponent stays positive, so that k can be read off as the low bits of a float: no integer conversion
    moved = kit.bits(x) + ((f.bias << f.mantissa) - root)
    counted = kit.real((moved >> f.mantissa) | kit.pattern(2.0**f.mantissa))
    k = counted - select(denormal, kit.of(2.0**f.mantissa + f.bias + lift), kit.of(2.0**f.mantissa + f.bias))
    return k, kit.real((moved & kit.mantissa_mask) + root)


def log_tail(kit: Kit, f: Expr, low: Expr | None = None) -> Expr:
    """Returns log(1 + f) - f, plus *low*, for sqrt(1/2) <= 1 + f <= sqrt(2)."""
    square = f * f
    if not kit.double:
        cubic = kit.horner(f, LOG) * f
        inner = cubic * square if low is None else kit.fma(cubic, square, low)
        return kit.fma(square, -0.5, inner)
    s = f / (f + 2.0)
    s2 = s * s
    half = square * 0.5
    inner = s * kit.fma(kit.horner(s2, LOG_RATIO), s2, half)
    return (inner if low is None else inner + low) - half


def defined(kit: Kit, x: Expr, y: Expr, pole: float) -> Expr:
    """Returns *y* where a logarithm with its pole at *pole* is finite, else minus infinity, infinity or NaN."""
    y = select(x > pole, y, select(eq(x, pole), kit.of(-math.inf), kit.of(math.nan)))
    return select(x < math.inf, y, x)


@expansion("log", f32=Error(0.85, 0.85), f64=Error(0.85, 0.85))
def log(kit: Kit, x: Expr) -> Expr:
    """Returns the natural logarithm."""
    k, m = split_exponent(kit, x)
    high, low = LN_2[kit.element]
    f = m - 1.0
    return defined(kit, x, kit.fma(k, high, f + log_tail(kit, f, k * low)), 0.0)


@expansion("log2", f32=Error(1.3, 1.3), f64=Error(1.2, 1.2))
def log2(kit: Kit, x: Expr) -> Expr:
    """Returns the logarithm to base 2."""
    k, m = split_exponent(kit, x)
    f = m - 1.0
    tail = log_tail(kit, f)
    total = f + tail
    head = kit.head(total)
    rest = (f - head) + tail
    high, low = LOG2_E[kit.element]
    small = kit.fma(rest, high + low, head * low)
    return defined(kit, x, kit.fma(head, high, k) + small, 0.0)


@expansion("log1p", f32=Error(1.5, 1.5), f64=Error(1.5, 1.5))
def log1p(kit: Kit, x: Expr) -> Expr:
    """Returns log(1 + x), accurate near zero.

    The exponent k is that of the rounded 1 + x, but the significand is made from x itself: 2^-k x + (2^-k - 1).
    """
    f = kit.format
    moved = kit.bits(x + 1.0) + ((f.bias << f.mantissa) - _SQRT_HALF[kit.element])
    exponent = moved >> f.mantissa
    k = kit.real(exponent | kit.pattern(2.0**f.mantissa)) - (2.0**f.mantissa + f.bias)
    down = (exponent << f.mantissa) - (f.bias << f.mantissa)
    scaled = kit.real(kit.bits(x) - down)
    four = kit.real(kit.pattern(4.0) - down)  # 4 * 2^-k is a normal number for every k
    r = scaled + kit.fma(four, 0.25, -1.0)
    high, low = LN_2[kit.element]
    y = kit.fma(k, high, r + log_tail(kit, r, k * low))
    return kit.keep_zero(x, defined(kit, x, y, -1.0))
