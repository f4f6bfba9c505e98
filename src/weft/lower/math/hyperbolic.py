"""tanh, sigmoid, sinh, cosh and their inverses, on exponentials and logarithms."""

from __future__ import annotations

import math
from typing import Final

from weft.ir import Expr, select
from weft.lower.math.expansions import Error, expansion
from weft.lower.math.exponential import LN_2, LOG2_E, bounded_exp, quarter_expm1
from weft.lower.math.kit import Coefficients, Kit
from weft.lower.math.logarithm import log1p
from weft.support.dtypes import f32, f64

# (tanh(x) / x - 1) / x^2 in x^2 for |x| <= 0.55, relative error of tanh 2^-28.6 and 2^-60.4
TANH: Coefficients = {
    f32: (-0.33333316, 0.13332544, -0.05384804, 0.021059232, -0.006266449),
    f64: (
        -0.333333333333333,
        0.1333333333332658,
        -0.05396825396373708,
        0.021869488385188623,
        -0.008863232590673254,
        0.003592091923683792,
        -0.0014555421669369536,
        0.0005884416833353051,
        -0.00023337424958501222,
        8.330544527929808e-05,
        -1.9487421024748378e-05,
    ),
}

_DIRECT: Final = 0.5493
"""Below this, where tanh is a half, it is the polynomial alone."""


@expansion("tanh", f32=Error(1.6, 1.7), f64=Error(1.7, 1.7))
def tanh(kit: Kit, x: Expr) -> Expr:
    """Returns the hyperbolic tangent.

    With |x| = n ln 2 / 2 + r, T = tanh(r) and S = 2^n it is ((S - 1) + (S + 1) T) / ((S + 1) + (S - 1) T). The
    denominator is made as numerator + (2 - 2 T), so that the numerator's rounding cancels where S is large.
    """
    a = kit.at_most(kit.abs(x), kit.pick(9.02, 19.1))
    t = select(a < _DIRECT, kit.of(kit.shifter), kit.shifted(a, 2 * LOG2_E))
    high, low = LN_2[kit.element]
    n = kit.unshifted(t)
    r = kit.subtract_multiple(a, n, (high / 2, low / 2) if kit.double else (math.log(2) / 2,))
    square = r * r
    part = kit.fma(kit.horner(square, TANH), square * r, r)
    s = kit.power_of_two(t)
    above = kit.fma(s + 1.0, part, s - 1.0)
    return kit.with_sign(above / (above + kit.fma(part, -2.0, 2.0)), kit.sign(x))


@expansion("sigmoid", f32=Error(1.7, 2.0), f64=Error(1.7, 2.0))
def sigmoid(kit: Kit, x: Expr) -> Expr:
    """Returns 1 / (1 + e^-x), down to the smallest denormal.

    With z = e^-|x| and q = z / (1 + z) it is 1 - q for positive x, and z - z q for negative.
    """
    z = bounded_exp(kit, kit.at_least(-kit.abs(x), kit.pick(-104.0, -746.0)))
    q = z / (z + 1.0)
    top = select(x < 0.0, z, kit.of(1.0))
    return kit.fma(-top, q, top)


@expansion("sinh", f32=Error(2.6, 2.6), f64=Error(2.7, 2.7))
def sinh(kit: Kit, x: Expr) -> Expr:
    """Returns the hyperbolic sine, t / 2 * (1 + 1 / (t + 1)) with t = e^|x| - 1."""
    u = quarter_expm1(kit, kit.at_most(kit.abs(x), kit.pick(89.5, 710.5)))
    large = (u + u) * (kit.of(1.0) / (u * 4.0 + 1.0) + 1.0)
    return select(kit.abs(x) < kit.pick(1e-4, 1e-9), x, kit.with_sign(large, kit.sign(x)))


@expansion("cosh", f32=Error(1.4, 1.6), f64=Error(1.4, 1.7))
def cosh(kit: Kit, x: Expr) -> Expr:
    """Returns the hyperbolic cosine."""
    half = bounded_exp(kit, kit.at_most(kit.abs(x), kit.pick(89.5, 710.5)), factor=0.5)
    return half + kit.of(0.25) / half


@expansion("asinh", f32=Error(1.9, 1.9), f64=Error(1.9, 1.9))
def asinh(kit: Kit, x: Expr) -> Expr:
    """Returns the inverse hyperbolic sine, log1p(a + a^2 / (1 + sqrt(a^2 + 1))) with a = |x|."""
    a = kit.abs(x)
    huge = a > kit.pick(1e9, 1e18)
    b = select(huge, kit.of(0.0), a)
    square = b * b
    y = log1p(kit, select(huge, a, b + square / (kit.sqrt(square + 1.0) + 1.0)))
    return kit.with_sign(y + select(huge, kit.of(math.log(2)), kit.of(0.0)), kit.sign(x))


@expansion("acosh", f32=Error(2.3, 2.3), f64=Error(2.7, 2.7))
def acosh(kit: Kit, x: Expr) -> Expr:
    """Returns the inverse hyperbolic cosine, log1p(t + sqrt(2 t + t^2)) with t = x - 1."""
    huge = x > kit.pick(1e9, 1e18)
    t = select(huge, kit.of(1.0), x) - 1.0
    y = log1p(kit, select(huge, x, t + kit.sqrt(t * (t + 2.0))))
    y = y + select(huge, kit.of(math.log(2)), kit.of(0.0))
    return select(x < 1.0, kit.of(math.nan), y)


@expansion("atanh", f32=Error(2.1, 2.1), f64=Error(2.0, 2.0))
def atanh(kit: Kit, x: Expr) -> Expr:
    """Returns the inverse hyperbolic tangent, log1p(2 a / (1 - a)) / 2 with a = |x|."""
    a = kit.abs(x)
    return kit.with_sign(log1p(kit, (a + a) / (kit.of(1.0) - a)) * 0.5, kit.sign(x))
