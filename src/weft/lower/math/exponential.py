"""exp, exp2 and expm1: a power of two times a polynomial on a small interval."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from weft.ir import Expr, select
from weft.lower.math.expansions import Error, expansion
from weft.lower.math.kit import Coefficients, Kit
from weft.support.dtypes import f32, f64

LOG2_E: Final = 1.4426950408889634
LN_2: Final = {f32: (0.693145751953125, 1.42860677e-06), f64: (0.6931471805598903, 5.497923018708371e-14)}
"""ln 2 as a part with enough trailing zeros that its product with an exponent is exact, and the rest."""

# |x| <= ln 2 / 2, relative error 2^-28.0 and 2^-57.4
EXP: Coefficients = {
    f32: (1.0, 1.0, 0.49999994, 0.16666517, 0.04166825, 0.008369095, 0.0013816997),
    f64: (
        1.0,
        1.0,
        0.5000000000000011,
        0.1666666666666643,
        0.04166666666652563,
        0.008333333333478528,
        0.0013888888944348324,
        0.00019841269506377712,
        2.4801492733427382e-05,
        2.755762727733326e-06,
        2.763030059452893e-07,
        2.4974118091879365e-08,
    ),
}

# 2^x for |x| <= 1/2, relative error 2^-27.5 and 2^-54.0
EXP2: Coefficients = {
    f32: (1.0, 0.69314724, 0.24022655, 0.055502728, 0.009617062, 0.0013417748, 0.00015825756),
    f64: (
        1.0,
        0.6931471805599457,
        0.240226506959101,
        0.05550410866478755,
        0.009618129107605568,
        0.0013333558152430413,
        0.00015403530436676826,
        1.5252729379532404e-05,
        1.321544876656711e-06,
        1.0179616299945114e-07,
        7.070990321413482e-09,
        4.242243014178233e-10,
    ),
}

# (e^x - 1 - x) / x^2 for |x| <= ln 2 / 2, relative error of e^x - 1: 2^-31.0 and 2^-60.0
EXPM1: Coefficients = {
    f32: (0.5, 0.16666666, 0.041666463, 0.008333639, 0.0013935483, 0.00019668795),
    f64: (
        0.5,
        0.16666666666666677,
        0.0416666666666662,
        0.00833333333332076,
        0.0013888888889210262,
        0.00019841269888670073,
        2.4801586504281223e-05,
        2.755724152786654e-06,
        2.7558111910596823e-07,
        2.511000617623394e-08,
        2.0619637883060697e-09,
    ),
}

_LEAST_EXP: Final = -103.97208, -745.1332191019412
"""The least numbers of each type whose exponential is not rounded to zero."""


def bounded_exp(kit: Kit, x: Expr, factor: float = 1.0) -> Expr:
    """Returns *factor* e^x, for x between -104 and 89.5 (float64: -746 and 710.5) and a *factor* of 1 or 1/2.

    With n the integer next to x / ln 2 the scale 2^n is kept as two factors, so the exponent never leaves the normal
    range and a denormal result is rounded once.
    """
    t, half = kit.shifted(x, LOG2_E), kit.shifted(x, LOG2_E / 2)
    p = kit.horner(kit.subtract_multiple(x, kit.unshifted(t), LN_2[kit.element]), EXP)
    return kit.scaled(p if factor == 1.0 else p * factor, t, half)


@expansion("exp", f32=Error(0.95, 1.2), f64=Error(0.95, 1.2))
def exp(kit: Kit, x: Expr) -> Expr:
    """Returns e^x."""
    return _but_zero(
        kit,
        x,
        kit.pick(*_LEAST_EXP),
        lambda near: bounded_exp(kit, kit.at_most(near, kit.pick(89.0, 710.0))),
    )


@expansion("exp_flushed", f32=Error(0.95, 1.2), f64=Error(0.95, 1.2))
def exp_flushed(kit: Kit, x: Expr) -> Expr:
    """Returns e^x, for x of at most 88; where that is no normal number, it may be zero.

    So it is for weights that are divided by a sum of at least 1. The exponent is a normal number's, and 2^n a single factor,
    whose bits stand in the rounded quotient: at the bound, they are those of zero.
    """
    if kit.scales:
        return _but_zero(kit, x, kit.pick(*_LEAST_EXP), lambda near: bounded_exp(kit, near))
    bounded = kit.at_least(x, kit.pick(-88.0, -709.0))
    t = kit.fma(bounded, LOG2_E, kit.biased_shifter)
    p = kit.horner(kit.subtract_multiple(bounded, t - kit.biased_shifter, LN_2[kit.element]), EXP)
    return p * kit.power_of_biased(t)


@expansion("exp2", f32=Error(0.95, 1.2), f64=Error(1.1, 1.4))
def exp2(kit: Kit, x: Expr) -> Expr:
    """Returns 2^x."""

    def power(near: Expr) -> Expr:
        bounded = kit.at_most(near, kit.pick(129.0, 1025.0))
        t, half = bounded + kit.shifter, kit.shifted(bounded, 0.5)
        return kit.scaled(kit.horner(bounded - kit.unshifted(t), EXP2), t, half)

    return _but_zero(kit, x, kit.pick(-150.0, -1075.0), power)


@expansion("exp2_flushed", f32=Error(0.95, 1.2), f64=Error(1.1, 1.4))
def exp2_flushed(kit: Kit, x: Expr) -> Expr:
    """Returns 2^x, but zero where that is no normal number."""
    least, most = kit.pick(-126.0, -1022.0), kit.pick(129.0, 1025.0)

    def power(near: Expr) -> Expr:
        bounded = kit.at_most(near, most)
        t, half = bounded + kit.shifter, kit.shifted(bounded, 0.5)
        return kit.scaled(kit.horner(bounded - kit.unshifted(t), EXP2), t, half)

    return _but_zero(kit, x, least, power)


def _but_zero(kit: Kit, x: Expr, bound: float, power: Callable[[Expr], Expr]) -> Expr:
    """Returns *power* of x, but zero below *bound*, where the power rounds to zero.

    Many processors take a hundred times as long to underflow as to compute, and masked scores of an attention all do: they are
    replaced before. Where powers of two are multiplied by as such, that is the only step that could underflow, and leaves their
    lanes out: the comparison is its mask.
    """
    vanishes = x < bound
    if kit.scales:
        return select(vanishes, kit.of(0.0), power(x))
    return select(vanishes, kit.of(0.0), power(select(vanishes, kit.of(0.0), x)))


def quarter_expm1(kit: Kit, x: Expr) -> Expr:
    """Returns (e^x - 1) / 4, which does not overflow until e^x exceeds the largest number twice over.

    With n the integer next to x / ln 2 and r the remainder, it is 2^(n-2) (e^r - 1) + (2^(n-2) - 1/4).
    """
    t = kit.shifted(x, LOG2_E)
    r = kit.subtract_multiple(x, kit.unshifted(t), LN_2[kit.element])
    small = kit.fma(r * r, kit.horner(r, EXPM1), r)
    s = kit.power_of_two(t, -2)
    return kit.fma(small, s, s - 0.25)


@expansion("expm1", f32=Error(1.5, 1.5), f64=Error(2.0, 2.0))
def expm1(kit: Kit, x: Expr) -> Expr:
    """Returns e^x - 1, accurate near zero."""
    bounded = kit.at_least(kit.at_most(x, kit.pick(89.0, 710.0)), kit.pick(-18.0, -38.0))
    tiny = kit.abs(x) < kit.pick(2.0**-26, 2.0**-55)  # a quarter of a denormal would lose its last bits
    return select(tiny, x, quarter_expm1(kit, bounded) * 4.0)
