"""Derivatives of the gamma function's logarithm, and Hurwitz' zeta function, of which these are values.

Sums of powers begin with terms one by one, and go on by the formula of Euler and Maclaurin (Abramowitz and Stegun, 23.1.30).
"""

from __future__ import annotations

import math
from typing import Final

from weft.graph.builder.builder import Builder
from weft.graph.builder.partial_evaluator import Operand

_TERMS: Final = 20
"""Terms that are added one by one; arguments above -12 are far from 0 behind them."""

_BERNOULLI: Final = (1 / 6, -1 / 30, 1 / 42, -1 / 30, 5 / 66, -691 / 2730, 7 / 6)
"""Bernoulli's numbers of even index, from 2 on."""


def zeta(b: Builder, s: Operand, q: Operand) -> Operand:
    """Returns the sum of (q + k) to the power of -s, over all k from 0: NaN where *s* is below 1."""
    dtype = s.dtype
    one, zero = b.scalar(1, dtype), b.scalar(0, dtype)
    infinite, nan = b.scalar(math.inf, dtype), b.scalar(math.nan, dtype)
    made = zeta_of_large(b, s, q)
    whole_q, whole_s = (b.add("equal", v, b.add("floor", v)) for v in (q, s))
    below = b.add("where", whole_q, infinite, b.add("where", whole_s, made, nan))
    made = b.add("where", b.add("less_equal", q, zero), below, made)
    return b.add("where", b.add("less", s, one), nan, b.add("where", b.add("equal", s, one), infinite, made))


def zeta_of_large(b: Builder, s: Operand, q: Operand) -> Operand:
    """Returns Hurwitz' zeta function of powers *s* above 1."""
    dtype = s.dtype
    less = b.add("neg", s)
    total: Operand = b.scalar(0, dtype)
    for k in range(_TERMS):
        total = b.add("add", total, b.add("power", b.add("add", q, b.scalar(k, dtype)), less))
    far = b.add("add", q, b.scalar(_TERMS, dtype))
    power = b.add("power", far, less)
    integral = b.add("div", b.add("mul", power, far), b.add("sub", s, b.scalar(1, dtype)))
    total = b.add("add", total, b.add("add", integral, b.add("mul", power, b.scalar(0.5, dtype))))
    term = b.add("div", b.add("mul", power, s), far)
    for j, number in enumerate(_BERNOULLI, 1):
        total = b.add("add", total, b.add("mul", term, b.scalar(number / math.factorial(2 * j), dtype)))
        rising = b.add("mul", *[b.add("add", s, b.scalar(2 * j - 1 + k, dtype)) for k in (0, 1)])
        term = b.add("div", b.add("mul", term, rising), b.add("square", far))
    return total


def digamma(b: Builder, x: Operand) -> Operand:
    """Returns the digamma function; of numbers below 1/2 by reflection: psi(1 - x) - pi / tan(pi x)."""
    dtype = x.dtype
    one, zero = b.scalar(1, dtype), b.scalar(0, dtype)
    low = b.add("less", x, b.scalar(0.5, dtype))
    z = b.add("where", low, b.add("sub", one, x), x)
    steps = 8
    total: Operand = b.scalar(0, dtype)
    for k in range(steps):
        total = b.add("add", total, b.add("reciprocal", b.add("add", z, b.scalar(k, dtype))))
    far = b.add("add", z, b.scalar(steps, dtype))
    inverse = b.add("reciprocal", b.add("square", far))
    rest: Operand = zero
    for j, number in reversed(list(enumerate(_BERNOULLI, 1))):
        rest = b.add("mul", inverse, b.add("add", b.scalar(number / (2 * j), dtype), rest))
    made = b.add("sub", b.add("log", far), b.add("mul", b.add("reciprocal", far), b.scalar(0.5, dtype)))
    made = b.add("sub", b.add("sub", made, rest), total)
    turn = b.add("sub", x, b.add("floor", x))
    angle = b.add("mul", turn, b.scalar(math.pi, dtype))
    cotangent = b.add("div", b.add("cos", angle), b.add("sin", angle))
    reflected = b.add("sub", made, b.add("mul", cotangent, b.scalar(math.pi, dtype)))
    poles = b.add("logical_and", low, b.add("equal", turn, zero))
    nan = b.scalar(math.nan, dtype)
    at_pole = b.add("where", b.add("equal", x, zero), b.add("neg", b.add("reciprocal", x)), nan)
    return b.add("where", poles, at_pole, b.add("where", low, reflected, made))
