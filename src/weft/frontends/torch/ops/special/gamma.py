"""Incomplete gamma functions, derivatives of gamma's logarithm, and Hurwitz' zeta function, of which these are values.

Sums of powers begin with terms one by one, and go on by the formula of Euler and Maclaurin (Abramowitz and Stegun, 23.1.30).
"""

from __future__ import annotations

import math
from typing import Final

from weft.frontends.torch.call import Call, common_shape
from weft.frontends.torch.registry import Translation, translates
from weft.graph.builder import Operand, Results
from weft.graph.composites.numerics.incomplete_gamma import incomplete_gamma

_TERMS: Final = 20
"""Terms that are added one by one; arguments above -12 are far from 0 behind them."""

_BERNOULLI: Final = (1 / 6, -1 / 30, 1 / 42, -1 / 30, 5 / 66, -691 / 2730, 7 / 6)
"""Bernoulli's numbers of even index, from 2 on."""


def _incomplete(*, upper: bool) -> Translation:
    """The share of the gamma function's integral below a bound, or above it."""

    def translate(c: Call) -> Results:
        given = [c.operand(name, c.dtype) for name in ("self", "other")]
        shape = common_shape([v.shape for v in given])
        a, x = (c.add("expand", v, shape=shape) for v in given)
        return incomplete_gamma(c, a, x, upper=upper)

    return translate


translates("igamma", "prims.igamma.default")(_incomplete(upper=False))
translates("igammac", "prims.igammac.default")(_incomplete(upper=True))


@translates("digamma", "prims.digamma.default")
def digamma(c: Call) -> Results:
    """The derivative of the logarithm of the gamma function."""
    return _digamma(c, c.operand("self", c.dtype))


@translates("polygamma")
def polygamma(c: Call) -> Results:
    """A further derivative, the n-th of the digamma function."""
    n, x = c.integer("n"), c.operand("self", c.dtype)
    if n == 0:
        return _digamma(c, x)
    factor = (-1) ** (n + 1) * math.factorial(n)
    return c.add("mul", _zeta(c, c.scalar(n + 1, c.dtype), x), c.scalar(factor, c.dtype))


@translates("special_zeta", "special_zeta.self_scalar", "special_zeta.other_scalar", "prims.zeta.default")
def zeta(c: Call) -> Results:
    """The sum of (other + k) to the power of -self, over all k from 0: NaN where self is below 1."""
    s, q = c.operand("self", c.dtype), c.operand("other", c.dtype)
    one, zero = c.scalar(1, c.dtype), c.scalar(0, c.dtype)
    infinite, nan = c.scalar(math.inf, c.dtype), c.scalar(math.nan, c.dtype)
    made = _zeta(c, s, q)
    whole_q, whole_s = (c.add("equal", v, c.add("floor", v)) for v in (q, s))
    below = c.add("where", whole_q, infinite, c.add("where", whole_s, made, nan))
    made = c.add("where", c.add("less_equal", q, zero), below, made)
    return c.add("where", c.add("less", s, one), nan, c.add("where", c.add("equal", s, one), infinite, made))


def _zeta(c: Call, s: Operand, q: Operand) -> Operand:
    """Returns the sum for powers above 1."""
    less = c.add("neg", s)
    total: Operand = c.scalar(0, c.dtype)
    for k in range(_TERMS):
        total = c.add("add", total, c.add("power", c.add("add", q, c.scalar(k, c.dtype)), less))
    far = c.add("add", q, c.scalar(_TERMS, c.dtype))
    power = c.add("power", far, less)
    integral = c.add("div", c.add("mul", power, far), c.add("sub", s, c.scalar(1, c.dtype)))
    total = c.add("add", total, c.add("add", integral, c.add("mul", power, c.scalar(0.5, c.dtype))))
    term = c.add("div", c.add("mul", power, s), far)
    for j, number in enumerate(_BERNOULLI, 1):
        total = c.add("add", total, c.add("mul", term, c.scalar(number / math.factorial(2 * j), c.dtype)))
        rising = c.add("mul", *[c.add("add", s, c.scalar(2 * j - 1 + k, c.dtype)) for k in (0, 1)])
        term = c.add("div", c.add("mul", term, rising), c.add("square", far))
    return total


def _digamma(c: Call, x: Operand) -> Operand:
    """Returns the digamma function; of numbers below 1/2 by reflection: psi(1 - x) - pi / tan(pi x)."""
    one, zero = c.scalar(1, c.dtype), c.scalar(0, c.dtype)
    low = c.add("less", x, c.scalar(0.5, c.dtype))
    z = c.add("where", low, c.add("sub", one, x), x)
    steps = 8
    total: Operand = c.scalar(0, c.dtype)
    for k in range(steps):
        total = c.add("add", total, c.add("reciprocal", c.add("add", z, c.scalar(k, c.dtype))))
    far = c.add("add", z, c.scalar(steps, c.dtype))
    inverse = c.add("reciprocal", c.add("square", far))
    rest: Operand = zero
    for j, number in reversed(list(enumerate(_BERNOULLI, 1))):
        rest = c.add("mul", inverse, c.add("add", c.scalar(number / (2 * j), c.dtype), rest))
    made = c.add("sub", c.add("log", far), c.add("mul", c.add("reciprocal", far), c.scalar(0.5, c.dtype)))
    made = c.add("sub", c.add("sub", made, rest), total)
    turn = c.add("sub", x, c.add("floor", x))
    angle = c.add("mul", turn, c.scalar(math.pi, c.dtype))
    cotangent = c.add("div", c.add("cos", angle), c.add("sin", angle))
    reflected = c.add("sub", made, c.add("mul", cotangent, c.scalar(math.pi, c.dtype)))
    poles = c.add("logical_and", low, c.add("equal", turn, zero))
    nan = c.scalar(math.nan, c.dtype)
    at_pole = c.add("where", c.add("equal", x, zero), c.add("neg", c.add("reciprocal", x)), nan)
    return c.add("where", poles, at_pole, c.add("where", low, reflected, made))
