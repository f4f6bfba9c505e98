"""pow and rsqrt."""

from __future__ import annotations

import math
from typing import Final

from weft.ir import Apply, Expr, eq, ne, select
from weft.lower.math.expansions import Error, expansion
from weft.lower.math.exponential import EXP2
from weft.lower.math.kit import Coefficients, Kit
from weft.lower.math.logarithm import split_exponent
from weft.support.dtypes import f32, f64

# log2((1 + s) / (1 - s)) for |s| <= 0.1716 beyond the terms in s (float64: in s and s^3), relative error 2^-36 and 2^-66
SERIES: Coefficients = {
    f32: (0.9617967, 0.5770789, 0.41192138, 0.3366285),
    f64: (
        0.5770780163556183,
        0.4121985830917657,
        0.3205989023069618,
        0.26230769802714343,
        0.2219841476326183,
        0.19125152233847942,
        0.1904204491505038,
    ),
}
CUBIC: Final = (0.9617967009544373, -7.028461650952758e-09)
"""2/3 log2(e) as a head and the rest."""

TWO_LOG2_E: Final = {f32: (2.8857421875, -0.0003521057), f64: (2.8853901028633118, -2.1085384952858276e-08)}
"""2 log2(e) as a head whose product with another head is exact, and the rest."""


@expansion("rsqrt", f32=Error(1.5, 1.5), f64=Error(1.5, 1.5))
def rsqrt(kit: Kit, x: Expr) -> Expr:
    """Returns 1 / sqrt(x)."""
    return kit.of(1.0) / kit.sqrt(x)


def _log2_in_two(kit: Kit, x: Expr) -> tuple[Expr, Expr]:
    """Returns log2(x) as the sum of two numbers, for a positive finite x.

    With x = 2^k m and s = (m - 1) / (m + 1) it is k + 2 log2(e) atanh(s). The quotient s is corrected by the remainder
    of its product with m + 1. Products that must be exact are made of heads, half a significand long
    (Dekker, 1971), so nothing here depends on a fused multiply-add.
    """
    k, m = split_exponent(kit, x)
    f, d = m - 1.0, m + 1.0
    d_rest = m - (d - 1.0)
    reciprocal = kit.of(1.0) / d
    s = f * reciprocal
    s_head, d_head = kit.head(s), kit.head(d)
    s_tail, d_tail = s - s_head, (d - d_head) + d_rest
    left = kit.fma(-s_tail, d, kit.fma(-s_head, d_tail, kit.fma(-s_head, d_head, f)))
    square = s * s
    correction = kit.fma(left, square, left) * reciprocal  # its effect on atanh(s), whose slope is near 1 + s^2
    high, low = TWO_LOG2_E[kit.element]
    small = kit.fma(s_head, low, (correction + s_tail) * (high + low))
    total, lost = _two_sum(k, s_head * high)
    if not kit.double:
        return _two_sum(total, lost + kit.fma(s * square, kit.horner(square, SERIES), small))
    cube, cube_rest = _cube(kit, s, s_head, s_tail)
    coefficient, rest = CUBIC
    small = kit.fma(s * square * square, kit.horner(square, SERIES), small)
    small = kit.fma(cube, rest, kit.fma(cube_rest, coefficient + rest, small))
    total, lost_too = _two_sum(total, cube * coefficient)
    return _two_sum(total, (lost + lost_too) + small)


def _cube(kit: Kit, s: Expr, s_head: Expr, s_tail: Expr) -> tuple[Expr, Expr]:
    """Returns (s_head + s_tail)^3 as a head and the rest, for float64, where one rounding of the cube is too many."""
    square = s_head * s_head
    square_head = kit.head(square)
    rough = kit.head(square * s_head)
    # square_head * s_head is exact; the tails of it, of the square and of s are added separately
    rest = kit.fma(square_head, s_head, -rough) + (square - square_head) * s_head
    return rough, kit.fma(s_tail, kit.fma(s, s_head + s, square), rest)


def _two_sum(a: Expr, b: Expr) -> tuple[Expr, Expr]:
    """Returns the rounded a + b and the rounding error, for |a| >= |b| (Dekker, 1971)."""
    total = a + b
    return total, (a - total) + b


def _positive_pow(kit: Kit, x: Expr, y: Expr) -> Expr:
    """Returns x^y for a positive finite x, as 2^(y log2 x)."""
    big = kit.pick(2.0**33, 2.0**64)  # beyond it every power of a number other than 1 is zero or infinite
    y = kit.at_least(kit.at_most(y, big), -big)
    log_x, log_rest = _log2_in_two(kit, x)
    y_head, log_head = kit.head(y), kit.head(log_x)
    product = y_head * log_head
    rest = kit.fma(y - y_head, log_x, kit.fma(y_head, log_x - log_head, y * log_rest))
    end = kit.pick(152.0, 1078.0)
    bounded = kit.at_least(kit.at_most(product + rest, end), -end)
    t, half = bounded + kit.shifter, kit.shifted(bounded, 0.5)
    r = kit.at_least(kit.at_most((product - kit.unshifted(t)) + rest, 0.6), -0.6)
    return kit.scaled(kit.horner(r, EXP2), t, half)


def _is_whole(x: Expr) -> Expr:
    return eq(Apply("floor", (x,)), x)


@expansion("pow", f32=Error(1.8, 2.0), f64=Error(1.8, 2.0))
def pow(kit: Kit, x: Expr, y: Expr) -> Expr:
    """Returns x^y with every special case of IEEE 754 (section 9.2.1)."""
    a = kit.abs(x)
    zero, endless = eq(a, 0.0), eq(a, math.inf)
    result = _positive_pow(kit, a, y)
    extreme = select((a < 1.0) ^ (y < 0.0), kit.of(0.0), kit.of(math.inf))
    result = select(zero | endless, extreme, result)
    whole = _is_whole(y)
    odd = whole & ~_is_whole(y * 0.5)
    result = select(odd, kit.with_sign(result, kit.sign(x)), result)
    undefined = ((x < 0.0) & ~whole & ~endless) | ne(x, x) | ne(y, y)
    result = select(undefined, kit.of(math.nan), result)
    return select(eq(x, 1.0) | eq(y, 0.0), kit.of(1.0), result)
