"""Functions of a number that are made of others, by formulas that keep their precision where those alone lose it."""

from __future__ import annotations

import math
from typing import Final

from weft.graph.builder.builder import Builder
from weft.graph.builder.partial_evaluator import Operand
from weft.support.dtypes import bool_, i32, i64

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


def is_finite(b: Builder, x: Operand) -> Operand:
    """Tells which elements of *x* are neither infinite nor NaN."""
    return b.add("logical_not", b.add("logical_or", b.add("is_nan", x), b.add("is_inf", x)))


def log1p(b: Builder, x: Operand) -> Operand:
    """log(1 + x): where 1 + x is rounded to u, log(u) is corrected by x / (u - 1) (Kahan)."""
    one = b.scalar(1, x.dtype)
    u = b.add("add", one, x)
    finite = b.add("less", u, b.scalar(math.inf, x.dtype))
    rest = b.add("sub", u, one)
    exact = b.add("equal", rest, b.scalar(0, x.dtype))
    ratio = b.add("div", x, b.add("where", exact, one, rest))
    log = b.add("log", u)
    small = b.add("where", exact, x, b.add("mul", log, ratio))
    return b.add("where", finite, small, log)


def expm1(b: Builder, x: Operand) -> Operand:
    """exp(x) - 1: for small x it is 2 t / (1 - t), where t is tanh(x / 2)."""
    one = b.scalar(1, x.dtype)
    t = b.add("tanh", b.add("mul", x, b.scalar(0.5, x.dtype)))
    near = b.add("div", b.add("add", t, t), b.add("sub", one, t))
    is_small = b.add("less", b.add("abs", x), one)
    return b.add("where", is_small, near, b.add("sub", b.add("exp", x), one))


def cbrt(b: Builder, x: Operand) -> Operand:
    """The third root, of negative numbers too."""
    root = b.add("power", b.add("abs", x), b.scalar(1 / 3, x.dtype))
    return b.add("mul", root, b.add("sign", x))


def erfc(b: Builder, x: Operand) -> Operand:
    """1 - erf(x), whose tail is as precise as the rest."""
    size = b.add("abs", x)
    one, two = b.scalar(1, x.dtype), b.scalar(2, x.dtype)
    t = _share(b, size)
    tail = b.add("mul", t, b.add("exp", b.add("sub", _exponent(b, t), b.add("square", size))))
    far = b.add("where", b.add("less", x, b.scalar(0, x.dtype)), b.add("sub", two, tail), tail)
    is_near = b.add("less", size, b.scalar(0.5, x.dtype))
    return b.add("where", is_near, b.add("sub", one, b.add("erf", x)), far)


def erfcx(b: Builder, x: Operand) -> Operand:
    """(1 - erf(x)) exp(x^2)."""
    size, growth = b.add("abs", x), b.add("exp", b.add("square", x))
    t = _share(b, size)
    tail = b.add("mul", t, b.add("exp", _exponent(b, t)))
    below = b.add("sub", b.add("add", growth, growth), tail)
    return b.add("where", b.add("less", x, b.scalar(0, x.dtype)), below, tail)


def erfinv(b: Builder, x: Operand) -> Operand:
    """The number whose error function is x: by that of 1 - |x|, and near 0 by Newton's steps."""
    size = b.add("abs", x)
    y = b.add("mul", size, b.scalar(math.sqrt(math.pi) / 2, x.dtype))
    for _ in range(4):
        slope = b.add("mul", b.add("exp", b.add("neg", b.add("square", y))), b.scalar(2 / math.sqrt(math.pi), x.dtype))
        y = b.add("sub", y, b.add("div", b.add("sub", b.add("erf", y), size), slope))
    far = erfcinv(b, b.add("sub", b.scalar(1, x.dtype), size))
    made = b.add("where", b.add("less", size, b.scalar(0.5, x.dtype)), y, far)
    return b.add("where", b.add("less", x, b.scalar(0, x.dtype)), b.add("neg", made), made)


def ndtri(b: Builder, x: Operand) -> Operand:
    """The number below which so much of the normal distribution lies."""
    half = b.scalar(0.5, x.dtype)
    low = b.add("less", x, half)
    share = b.add("where", low, x, b.add("sub", b.scalar(1, x.dtype), x))
    made = erfcinv(b, b.add("add", share, share))
    made = b.add("mul", made, b.scalar(math.sqrt(2), x.dtype))
    return b.add("where", low, b.add("neg", made), made)


def erfcinv(b: Builder, q: Operand) -> Operand:
    """The y of which 1 - erf(y) is *q*, between 0 and 1; infinity for 0 and NaN below.

    It begins with the root of the tail's leading term, and takes Newton's steps for the logarithm, which is nearly a parabola.
    """
    one = b.scalar(1, q.dtype)
    log = b.add("log", q)
    y = b.add("sqrt", b.add("neg", log))
    for _ in range(5):
        tail = erfc(b, y)
        bell = b.add("mul", b.add("exp", b.add("neg", b.add("square", y))), b.scalar(2 / math.sqrt(math.pi), q.dtype))
        step = b.add("mul", b.add("sub", b.add("log", tail), log), b.add("div", tail, bell))
        y = b.add("add", y, step)
    infinite = b.add("equal", q, b.scalar(0, q.dtype))
    made = b.add("where", infinite, b.scalar(math.inf, q.dtype), y)
    return b.add("where", b.add("equal", q, one), b.scalar(0, q.dtype), made)


def _share(b: Builder, size: Operand) -> Operand:
    two = b.scalar(2, size.dtype)
    return b.add("div", two, b.add("add", two, size))


def _exponent(b: Builder, t: Operand) -> Operand:
    """Returns the polynomial in the exponent of the complementary error function."""
    total: Operand = b.scalar(_ERFC[-1], t.dtype)
    for k in reversed(_ERFC[:-1]):
        total = b.add("add", b.scalar(k, t.dtype), b.add("mul", t, total))
    return total


def lgamma(b: Builder, x: Operand) -> Operand:
    """The logarithm of the gamma function's size: by Lanczos' formula, and of numbers below 1/2 by Euler's reflection."""
    one, half = b.scalar(1, x.dtype), b.scalar(0.5, x.dtype)
    low = b.add("less", x, half)
    z = b.add("sub", b.add("where", low, b.add("sub", one, x), x), one)
    series: Operand = b.scalar(_LANCZOS[0], x.dtype)
    for k, p in enumerate(_LANCZOS[1:], 1):
        series = b.add("add", series, b.add("div", b.scalar(p, x.dtype), b.add("add", z, b.scalar(float(k), x.dtype))))
    t = b.add("add", z, b.scalar(7.5, x.dtype))
    power = b.add("sub", b.add("mul", b.add("add", z, half), b.add("log", t)), t)
    high = b.add("add", b.add("add", power, b.add("log", series)), b.scalar(math.log(2 * math.pi) / 2, x.dtype))
    turn = b.add("sub", x, b.add("floor", x))  # of which the sine is the same, but for its sign
    sine = b.add("abs", b.add("sin", b.add("mul", turn, b.scalar(math.pi, x.dtype))))
    reflected = b.add("sub", b.add("sub", b.scalar(math.log(math.pi), x.dtype), b.add("log", sine)), high)
    made = b.add("where", low, reflected, high)
    infinite = b.add("equal", b.add("abs", x), b.scalar(math.inf, x.dtype))
    return b.add("where", infinite, b.scalar(math.inf, x.dtype), made)


def atan2(b: Builder, y: Operand, x: Operand) -> Operand:
    """The angle of the point (x, y), between -pi and pi."""
    zero, turn, quarter = (b.scalar(v, x.dtype) for v in (0, math.pi, math.pi / 2))
    up, left = is_negative(b, y), is_negative(b, x)
    height, width = b.add("abs", y), b.add("abs", x)
    both = b.add("equal", height, width)  # both zero, or both infinite: their quotient is not a number
    ratio = b.add(
        "where",
        both,
        b.scalar(1, x.dtype),
        b.add("div", b.add("minimum", height, width), b.add("maximum", height, width)),
    )
    low = b.add("where", b.add("logical_and", both, b.add("equal", height, zero)), zero, b.add("atan", ratio))
    steep = b.add("where", b.add("less", width, height), b.add("sub", quarter, low), low)
    angle = b.add("where", left, b.add("sub", turn, steep), steep)
    return b.add("where", up, b.add("neg", angle), angle)


def is_negative(b: Builder, x: Operand) -> Operand:
    """Tells which elements have a minus: of floats, by the bit that zeros have too."""
    if x.dtype is bool_:
        return b.add("full", shape=x.shape, value=False, dtype=bool_)
    if x.dtype.is_float:
        dtype = i64 if x.dtype.bits == i64.bits else i32
        if x.dtype.bits < i32.bits:
            b.fail(f"the sign bit of {x.dtype} is not supported", "convert to float32 before")
        x = b.add("bit_cast", x, dtype=dtype)
    return b.add("less", x, b.scalar(0, x.dtype))
