"""The incomplete gamma functions, of which P is the lower one divided by gamma, and Q, the upper one, is 1 - P.

See Press et al., "Numerical Recipes" (2nd edition), section 6.2: the series of P where x < a + 1, and elsewhere the continued
fraction of Q, by Lentz' method. Either takes some multiple of the root of a steps where x is near a, and few elsewhere.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Final

import numpy as np

from weft.graph.builder.builder import Builder
from weft.graph.builder.partial_evaluator import Operand
from weft.graph.composites.branches_and_loops import loop
from weft.graph.composites.numerics.special_functions import lgamma
from weft.support.dtypes import f64, i64

_MOST_STEPS: Final = 50_000
"""Steps after which sums end: more than any a below 1e7 needs."""

_ENOUGH: Final = 4 * float(np.finfo(np.float64).eps)
"""The relative size of the last term of a sum."""

_TINY: Final = float(np.finfo(np.float64).tiny)
"""Stands for zeros that Lentz' method would divide by."""


def incomplete_gamma(b: Builder, a: Operand, x: Operand, *, upper: bool) -> Operand:
    """Returns P(a, x), or with *upper* Q(a, x), of tensors of one shape: in float64, so that powers keep their precision.

    Both are NaN of negative numbers, and where neither a nor x tells: of two zeros, and of two infinities.
    """
    dtype, a, x = a.dtype, b.cast(a, f64), b.cast(x, f64)
    low = b.add("less", x, b.add("add", a, _number(b, 1)))
    series, fraction = _sums(b, a, x, low)
    power = b.add("sub", b.add("sub", b.add("mul", a, b.add("log", x)), x), lgamma(b, a))
    found = b.add("mul", b.add("exp", power), b.add("where", low, series, fraction))
    rest = b.add("sub", _number(b, 1), found)
    made = b.add("where", low, rest, found) if upper else b.add("where", low, found, rest)
    return b.cast(_with_ends(b, a, x, made, upper=upper), dtype)


def _with_ends(b: Builder, a: Operand, x: Operand, made: Operand, *, upper: bool) -> Operand:
    """Returns *made* with the values at zeros, at infinities and below zero."""
    zero, infinity, nan = (_number(b, v) for v in (0, math.inf, math.nan))
    nothing, everything = (_number(b, v) for v in ((1, 0) if upper else (0, 1)))
    for holds, value in (
        (b.add("equal", x, zero), nothing),
        (b.add("equal", a, infinity), nothing),
        (b.add("equal", x, infinity), everything),
        (b.add("equal", a, zero), everything),
        (b.add("logical_and", *[b.add("equal", v, infinity) for v in (a, x)]), nan),
        (b.add("logical_and", *[b.add("equal", v, zero) for v in (a, x)]), nan),
        (b.add("logical_or", *[b.add("less", v, zero) for v in (a, x)]), nan),
    ):
        made = b.add("where", holds, value, made)
    return made


def _sums(b: Builder, a: Operand, x: Operand, low: Operand) -> tuple[Operand, Operand]:
    """Returns the series where *low* holds, and elsewhere the fraction; each takes one step of other elements."""
    zero, one, two = (_number(b, v) for v in (0, 1, 2))
    numerator = b.add("where", low, x, zero)
    start = b.add("where", low, b.add("reciprocal", a), one)
    shape = b.add("where", low, one, a)  # of a shape of 1 the fraction ends
    first = b.add("sub", b.add("add", b.add("where", low, two, x), one), shape)
    h = b.add("reciprocal", first)
    c = b.add("expand", _number(b, 1 / _TINY), shape=x.shape)

    def step(r: Builder, number: Operand, states: Sequence[Operand]) -> tuple[Operand, list[Operand], list[Operand]]:
        term, total, c, d, h = states
        n = r.add("add", r.cast(number, f64), _number(r, 1))
        term = r.add("div", r.add("mul", term, numerator), r.add("add", a, n))
        total = r.add("add", total, term)
        factor = r.add("mul", n, r.add("sub", shape, n))
        added = r.add("add", first, r.add("mul", n, _number(r, 2)))
        d = r.add("reciprocal", _not_zero(r, r.add("add", r.add("mul", factor, d), added)))
        c = _not_zero(r, r.add("add", added, r.add("div", factor, c)))
        change = r.add("mul", c, d)
        h = r.add("mul", h, change)
        distance = r.add("abs", r.add("sub", change, _number(r, 1)))
        more = r.add("less", r.add("mul", total, _number(r, _ENOUGH)), term)
        more = r.add("logical_or", more, r.add("less", _number(r, _ENOUGH), distance))
        count = r.add("reduce_sum", r.cast(more, i64), axes=tuple(range(more.rank)), keepdims=False)
        return r.add("less", r.scalar(0, i64), count), [term, total, c, d, h], []

    most = b.scalar(_MOST_STEPS, i64)
    _, series, _, _, fraction = loop(b, most, None, [start, start, c, h, h], step)[0]
    return series, fraction


def _not_zero(b: Builder, x: Operand) -> Operand:
    return b.add("where", b.add("less", b.add("abs", x), _number(b, _TINY)), _number(b, _TINY), x)


def _number(b: Builder, value: float) -> Operand:
    return b.scalar(value, f64)
