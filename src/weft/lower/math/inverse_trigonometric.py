"""asin, acos and atan: polynomials after one reduction."""

from __future__ import annotations

import math
from typing import Final

from weft.ir import Expr, select
from weft.lower.math.expansions import Error, expansion
from weft.lower.math.kit import Coefficients, Kit
from weft.support.dtypes import f32, f64

# (asin(x) / x - 1) / x^2 in x^2 for |x| <= 1/2, relative error of asin 2^-27.6 and 2^-55.8
ASIN: Coefficients = {
    f32: (0.16666752, 0.074953064, 0.04546977, 0.024180816, 0.042166296),
    f64: (
        0.16666666666665403,
        0.07500000000338587,
        0.04464285682693849,
        0.0303819591974379,
        0.022371756489765693,
        0.01735973049355281,
        0.01388495625393504,
        0.01217122080723496,
        0.0065185079753638095,
        0.01955629620314659,
        -0.016271514405875077,
        0.03194685781475195,
    ),
}

# (atan(x) / x - 1) / x^2 in x^2 for |x| <= tan(pi / 8), relative error of atan 2^-30.4 and 2^-58.9
ATAN: Coefficients = {
    f32: (-0.33333316, 0.19998527, -0.14244345, 0.10598728, -0.060887355),
    f64: (
        -0.3333333333333319,
        0.1999999999995218,
        -0.14285714280053752,
        0.11111110776279792,
        -0.090908975505505,
        0.07692056524507228,
        -0.06663062224332143,
        0.058475880162183254,
        -0.050379729868060094,
        0.03803171497974453,
        -0.017872675519092482,
    ),
}


HALF_PI: Final = {f32: (1.57079637050628662109375, -4.371139e-08), f64: (math.pi / 2, 6.123233995736766e-17)}
"""pi / 2 rounded, and the rounding error."""


def _asin_core(kit: Kit, a: Expr) -> tuple[Expr, Expr]:
    """Returns (far, y): y = asin(a), or asin(sqrt((1 - a) / 2)) where *far*, that is a > 1/2."""
    far = a > 0.5
    square = select(far, kit.fma(a, -0.5, 0.5), a * a)
    b = select(far, kit.sqrt(square), a)
    return far, kit.fma(kit.horner(square, ASIN), square * b, b)


@expansion("asin", f32=Error(2.4, 2.5), f64=Error(2.4, 2.4))
def asin(kit: Kit, x: Expr) -> Expr:
    """Returns the inverse sine, pi/2 - 2 asin(sqrt((1 - a) / 2)) for a = |x| above 1/2."""
    far, y = _asin_core(kit, kit.abs(x))
    high, low = HALF_PI[kit.element]
    return kit.with_sign(select(far, kit.fma(y, -2.0, low) + high, y), kit.sign(x))


@expansion("acos", f32=Error(1.3, 1.3), f64=Error(1.3, 1.3))
def acos(kit: Kit, x: Expr) -> Expr:
    """Returns the inverse cosine: 2 asin(sqrt((1 - a) / 2)), its supplement, or pi/2 - asin(x) near zero."""
    far, y = _asin_core(kit, kit.abs(x))
    y = kit.real(kit.bits(y) ^ kit.sign(x))
    start = select(far, select(x < 0.0, kit.of(math.pi), kit.of(0.0)), kit.of(math.pi / 2))
    return start + select(far, y + y, -y)


@expansion("atan", f32=Error(2.6, 2.6), f64=Error(2.5, 2.5))
def atan(kit: Kit, x: Expr) -> Expr:
    """Returns the inverse tangent: of a, of (a - 1) / (a + 1) plus pi/4, or of -1 / a plus pi/2, for a = |x|."""
    a = kit.abs(x)
    high, middle = a > math.tan(3 * math.pi / 8), a > math.tan(math.pi / 8)
    top = select(high, kit.of(-1.0), select(middle, a - 1.0, a))
    bottom = select(high, a, select(middle, a + 1.0, kit.of(1.0)))
    t = top / bottom
    square = t * t
    start = select(high, kit.of(math.pi / 2), select(middle, kit.of(math.pi / 4), kit.of(0.0)))
    return kit.with_sign(start + kit.fma(kit.horner(square, ATAN), square * t, t), kit.sign(x))
