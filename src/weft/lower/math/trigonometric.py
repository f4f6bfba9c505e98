"""sin, cos and tan: the argument less a multiple of pi (or pi / 2), then a polynomial.

Where the argument is large, the multiple takes integer arithmetic (`payne_hanek`), which is skipped where no lane needs it.
"""

from __future__ import annotations

import math
from typing import Final

from weft.ir import Expr, apply, eq, ne, select
from weft.lower.math.expansions import Error, expansion
from weft.lower.math.kit import Coefficients, Kit
from weft.lower.math.payne_hanek import FAST, pi_bits, reduce_large
from weft.support.dtypes import f32, f64

# (sin(x) / x - 1) / x^2 in x^2 for |x| <= 1.6, relative error of the sine 2^-26 and 2^-61; the float32 ones are adjusted
# within the noise of the arithmetic so that no sine exceeds 1
SIN: Coefficients = {
    f32: (-0.16666658, 0.008333037, -0.00019807009, 2.5988927e-06),
    f64: (
        -0.16666666666666666,
        0.008333333333333194,
        -0.00019841269841205572,
        2.755731921010537e-06,
        -2.505210675229725e-08,
        1.6058932684472917e-10,
        -7.642789584511368e-13,
        2.71888e-15,
    ),
}

# the same and (cos(x) - 1 + x^2 / 2) / x^4 for |x| <= pi / 4; 2^-27.9, 2^-57.9 and 2^-33.0, 2^-69.0
SIN_QUARTER: Coefficients = {
    f32: (-0.16666655, 0.008332187, -0.0001951791),
    f64: (
        -0.1666666666666663,
        0.008333333333321839,
        -0.00019841269829357379,
        2.755731353853902e-06,
        -2.5050734500613656e-08,
        1.5895448146993878e-10,
    ),
}
COS_QUARTER: Coefficients = {
    f32: (0.041666646, -0.001388731, 2.443234e-05),
    f64: (
        0.041666666666666664,
        -0.0013888888888888389,
        2.48015873011809e-05,
        -2.755731906076476e-07,
        2.0876722039438995e-09,
        -1.146686667054639e-11,
        4.592967684108869e-14,
    ),
}


def _parts(widths: tuple[int, ...]) -> tuple[float, ...]:
    """Splits pi into parts of the given numbers of bits, the last one rounded to float64."""
    scale = 256
    rest = pi_bits(scale)
    parts = []
    for width in widths:
        drop = max(rest.bit_length() - width, 0)
        part = rest >> drop << drop
        parts.append(math.ldexp(part, -scale))
        rest -= part
    return tuple(parts)


_PI_PARTS: Final = {
    (f32, True): _parts((24, 24, 24)),
    (f32, False): _parts((8, 8, 8, 8, 8, 24)),
    (f64, True): _parts((33, 33, 53)),
    (f64, False): _parts((33, 33, 53)),
}
"""pi in parts. A fused product needs no care; without it a part is short, so that its product with n is exact."""


def _remainder(kit: Kit, x: Expr, n: Expr, unit: float) -> Expr:
    """Returns x - n * unit * pi, for x within `FAST`."""
    return kit.subtract_multiple(x, n, [unit * part for part in _PI_PARTS[kit.element, kit.fused]])


def _is_large(kit: Kit, x: Expr) -> Expr:
    """Tells whether x is finite and beyond `FAST`, which is seldom the case."""
    size = kit.abs(x)
    return apply("unlikely", (size > FAST[kit.element]) & (size < math.inf))


def _sine(kit: Kit, r: Expr, parity: Expr) -> Expr:
    """Returns sin(r), negated where the word *parity* is odd."""
    square = r * r
    value = kit.fma(kit.horner(square, SIN), square * r, r)
    return kit.real(kit.bits(value) ^ (parity << (kit.format.word.bits - 1)))


def _tangent(kit: Kit, r: Expr, parity: Expr) -> Expr:
    """Returns sin(r) / cos(r), or -cos(r) / sin(r) where the word *parity* is odd."""
    square = r * r
    sine = kit.fma(kit.horner(square, SIN_QUARTER), square * r, r)
    cosine = kit.fma(square, kit.fma(square, kit.horner(square, COS_QUARTER), -0.5), 1.0)
    odd = ne(parity & 1, 0)
    return select(odd, -cosine, sine) / select(odd, sine, cosine)


def _odd(kit: Kit, x: Expr, of_size: Expr) -> Expr:
    """Returns the value at x of an odd function, given that at |x|."""
    return kit.real(kit.bits(of_size) ^ kit.sign(x))


@expansion("sin", f32=Error(1.9, 3.4), f64=Error(2.0, 2.0))
def sin(kit: Kit, x: Expr) -> Expr:
    """Returns the sine of the remainder of x by the nearest multiple of pi."""
    t = kit.shifted(x, 1 / math.pi)
    near = _sine(kit, _remainder(kit, x, kit.unshifted(t), 1.0), kit.bits(t))
    parity, r = reduce_large(kit, x)
    return kit.keep_zero(x, select(_is_large(kit, x), _odd(kit, x, _sine(kit, r, parity)), near))


@expansion("cos", f32=Error(1.9, 3.4), f64=Error(2.0, 2.0))
def cos(kit: Kit, x: Expr) -> Expr:
    """Returns the cosine, as the sine of x less an odd multiple of pi / 2."""
    t = kit.shifted(x, 1 / math.pi, 0.5)
    near = _sine(kit, _remainder(kit, x, kit.unshifted(t) - 0.5, 1.0), kit.bits(t))
    parity, r = reduce_large(kit, x, shifted=True)
    return select(eq(x, 0.0), kit.of(1.0), select(_is_large(kit, x), _sine(kit, r, parity), near))


@expansion("tan", f32=Error(3.0, 5.0), f64=Error(3.0, 4.2))
def tan(kit: Kit, x: Expr) -> Expr:
    """Returns the tangent of the remainder of x by the nearest multiple of pi / 2."""
    t = kit.shifted(x, 2 / math.pi)
    near = _tangent(kit, _remainder(kit, x, kit.unshifted(t), 0.5), kit.bits(t))
    parity, r = reduce_large(kit, x, 2)
    return kit.keep_zero(x, select(_is_large(kit, x), _odd(kit, x, _tangent(kit, r, parity)), near))
