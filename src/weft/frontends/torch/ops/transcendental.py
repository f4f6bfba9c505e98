"""Functions of one number that are made of others, by formulas that keep their precision where those alone lose it."""

from __future__ import annotations

import math
from typing import Final

from weft.frontends.torch.call import Call
from weft.frontends.torch.registry import Translation, translates
from weft.graph.builder import Operand, Results

_ERFC: Final = (
    -1.26551223,
    1.00002368,
    0.37409196,
    0.09678418,
    -0.18628806,
    0.27886807,
    -1.13520398,
    1.48851587,
    -0.82215223,
    0.17087277,
)
"""Coefficients of Press et al., Numerical Recipes (2nd edition, 6.2), of an error of 1.2e-7 of the result everywhere."""

_LANCZOS: Final = (
    0.99999999999980993,
    676.5203681218851,
    -1259.1392167224028,
    771.32342877765313,
    -176.61502916214059,
    12.507343278686905,
    -0.13857109526572012,
    9.9843695780195716e-6,
    1.5056327351493116e-7,
)
"""Coefficients of Lanczos' approximation with g = 7 and nine terms (Godfrey)."""


@translates("log1p")
def log1p(c: Call) -> Results:
    """log(1 + x): where 1 + x is rounded to u, log(u) is corrected by x / (u - 1) (Kahan)."""
    x, one = _given(c), c.scalar(1, c.dtype)
    u = c.add("add", one, x)
    finite = c.add("less", u, c.scalar(math.inf, c.dtype))
    rest = c.add("sub", u, one)
    exact = c.add("equal", rest, c.scalar(0, c.dtype))
    ratio = c.add("div", x, c.add("where", exact, one, rest))
    log = c.add("log", u)
    small = c.add("where", exact, x, c.add("mul", log, ratio))
    return c.add("where", finite, small, log)


@translates("expm1")
def expm1(c: Call) -> Results:
    """exp(x) - 1: for small x it is 2 t / (1 - t), where t is tanh(x / 2)."""
    x, one = _given(c), c.scalar(1, c.dtype)
    t = c.add("tanh", c.add("mul", x, c.scalar(0.5, c.dtype)))
    near = c.add("div", c.add("add", t, t), c.add("sub", one, t))
    is_small = c.add("less", c.add("abs", x), one)
    return c.add("where", is_small, near, c.add("sub", c.add("exp", x), one))


def _log(base: float) -> Translation:
    """The logarithm to a base."""
    return lambda c: c.add("mul", c.add("log", _given(c)), c.scalar(1 / math.log(base), c.dtype))


translates("log2")(_log(2))
translates("log10")(_log(10))


@translates("exp2")
def exp2(c: Call) -> Results:
    """Two to a power."""
    return c.add("power", c.scalar(2, c.dtype), _given(c))


@translates("cbrt")
def cbrt(c: Call) -> Results:
    """The third root, of negative numbers too."""
    x = _given(c)
    root = c.add("power", c.add("abs", x), c.scalar(1 / 3, c.dtype))
    return c.add("mul", root, c.add("sign", x))


@translates("erfc", "special_erfc")
def erfc(c: Call) -> Results:
    """1 - erf(x), whose tail is as precise as the rest."""
    return complementary_error(c, _given(c))


@translates("special_erfcx", "prims.erfcx.default")
def erfcx(c: Call) -> Results:
    """(1 - erf(x)) exp(x^2)."""
    x = _given(c)
    size, growth = c.add("abs", x), c.add("exp", c.add("square", x))
    t = _share(c, size)
    tail = c.add("mul", t, c.add("exp", _exponent(c, t)))
    below = c.add("sub", c.add("add", growth, growth), tail)
    return c.add("where", c.add("less", x, c.scalar(0, c.dtype)), below, tail)


@translates("erfinv", "prims.erf_inv.default")
def erfinv(c: Call) -> Results:
    """The number whose error function is x: by that of 1 - |x|, and near 0 by Newton's steps."""
    x = _given(c)
    size = c.add("abs", x)
    y = c.add("mul", size, c.scalar(math.sqrt(math.pi) / 2, c.dtype))
    for _ in range(4):
        slope = c.add("mul", c.add("exp", c.add("neg", c.add("square", y))), c.scalar(2 / math.sqrt(math.pi), c.dtype))
        y = c.add("sub", y, c.add("div", c.add("sub", c.add("erf", y), size), slope))
    far = inverse_complementary_error(c, c.add("sub", c.scalar(1, c.dtype), size))
    made = c.add("where", c.add("less", size, c.scalar(0.5, c.dtype)), y, far)
    return c.add("where", c.add("less", x, c.scalar(0, c.dtype)), c.add("neg", made), made)


@translates("special_ndtri", "prims.ndtri.default")
def ndtri(c: Call) -> Results:
    """The number below which so much of the normal distribution lies."""
    x, half = _given(c), c.scalar(0.5, c.dtype)
    low = c.add("less", x, half)
    share = c.add("where", low, x, c.add("sub", c.scalar(1, c.dtype), x))
    made = inverse_complementary_error(c, c.add("add", share, share))
    made = c.add("mul", made, c.scalar(math.sqrt(2), c.dtype))
    return c.add("where", low, c.add("neg", made), made)


def complementary_error(c: Call, x: Operand) -> Operand:
    """Returns 1 - erf(x), whose tail is as precise as the rest."""
    size = c.add("abs", x)
    one, two = c.scalar(1, c.dtype), c.scalar(2, c.dtype)
    t = _share(c, size)
    tail = c.add("mul", t, c.add("exp", c.add("sub", _exponent(c, t), c.add("square", size))))
    far = c.add("where", c.add("less", x, c.scalar(0, c.dtype)), c.add("sub", two, tail), tail)
    is_near = c.add("less", size, c.scalar(0.5, c.dtype))
    return c.add("where", is_near, c.add("sub", one, c.add("erf", x)), far)


def inverse_complementary_error(c: Call, q: Operand) -> Operand:
    """Returns the y of which 1 - erf(y) is *q*, between 0 and 1; infinity for 0 and NaN below.

    It begins with the root of the tail's leading term, and takes Newton's steps for the logarithm, which is nearly a parabola.
    """
    one = c.scalar(1, c.dtype)
    log = c.add("log", q)
    y = c.add("sqrt", c.add("neg", log))
    for _ in range(5):
        tail = complementary_error(c, y)
        bell = c.add("mul", c.add("exp", c.add("neg", c.add("square", y))), c.scalar(2 / math.sqrt(math.pi), c.dtype))
        step = c.add("mul", c.add("sub", c.add("log", tail), log), c.add("div", tail, bell))
        y = c.add("add", y, step)
    infinite = c.add("equal", q, c.scalar(0, c.dtype))
    made = c.add("where", infinite, c.scalar(math.inf, c.dtype), y)
    return c.add("where", c.add("equal", q, one), c.scalar(0, c.dtype), made)


def _share(c: Call, size: Operand) -> Operand:
    two = c.scalar(2, c.dtype)
    return c.add("div", two, c.add("add", two, size))


def _exponent(c: Call, t: Operand) -> Operand:
    """Returns the polynomial in the exponent of the complementary error function."""
    total: Operand = c.scalar(_ERFC[-1], c.dtype)
    for k in reversed(_ERFC[:-1]):
        total = c.add("add", c.scalar(k, c.dtype), c.add("mul", t, total))
    return total


@translates("lgamma")
def lgamma(c: Call) -> Results:
    """The logarithm of the gamma function's size: by Lanczos' formula, and of numbers below 1/2 by Euler's reflection."""
    x, one, half = _given(c), c.scalar(1, c.dtype), c.scalar(0.5, c.dtype)
    low = c.add("less", x, half)
    z = c.add("sub", c.add("where", low, c.add("sub", one, x), x), one)
    series: Operand = c.scalar(_LANCZOS[0], c.dtype)
    for k, p in enumerate(_LANCZOS[1:], 1):
        series = c.add("add", series, c.add("div", c.scalar(p, c.dtype), c.add("add", z, c.scalar(float(k), c.dtype))))
    t = c.add("add", z, c.scalar(7.5, c.dtype))
    power = c.add("sub", c.add("mul", c.add("add", z, half), c.add("log", t)), t)
    high = c.add("add", c.add("add", power, c.add("log", series)), c.scalar(math.log(2 * math.pi) / 2, c.dtype))
    turn = c.add("sub", x, c.add("floor", x))  # of which the sine is the same, but for its sign
    sine = c.add("abs", c.add("sin", c.add("mul", turn, c.scalar(math.pi, c.dtype))))
    reflected = c.add("sub", c.add("sub", c.scalar(math.log(math.pi), c.dtype), c.add("log", sine)), high)
    made = c.add("where", low, reflected, high)
    infinite = c.add("equal", c.add("abs", x), c.scalar(math.inf, c.dtype))
    return c.add("where", infinite, c.scalar(math.inf, c.dtype), made)


def _given(c: Call) -> Operand:
    return c.operand("self", c.dtype)
