"""Canonical comparisons of exact integers: decided where the bounds decide them, else without the terms that both sides share."""

from __future__ import annotations

from math import gcd

from weft.ir.bounds.polynomial import Poly, constant, plus, poly_to_expr, scaled
from weft.ir.expr.base import Expr
from weft.ir.expr.binary import Comparison, Eq, Le, Lt, Ne
from weft.ir.expr.constructors import const
from weft.ir.expr.order import order_key
from weft.ir.simplifier.context import Context
from weft.ir.simplifier.elimination import is_worth_it, range_of_sum
from weft.support.dtypes import DType


def decide(cls: type[Comparison], d: Poly, ctx: Context) -> bool | None:
    """Returns whether `0 <cls> d` always or never holds, None if it may vary or is not known."""
    if cls is Lt or cls is Le:
        least = 1 if cls is Lt else 0
        if not is_worth_it(d, ctx):
            low, high = range_of_sum(d, ctx)
            return True if low is not None and low >= least else False if high is not None and high < least else None
        if ctx.is_at_least(d, least):
            return True
        return False if ctx.is_at_least(scaled(d, -1), 1 - least) else None
    value = constant(d)
    if value is not None:
        return (value == 0) is (cls is Eq)
    if _misses_zero(d) or ctx.is_at_least(d, 1) or ctx.is_at_least(scaled(d, -1), 1):
        return cls is Ne
    return None


def _content(d: Poly) -> int:
    return gcd(*[k for m, k in d.items() if m])


def _misses_zero(d: Poly) -> bool:
    return d.get((), 0) % _content(d) != 0


def ordering(cls: type[Comparison], d: Poly, dtype: DType) -> Expr:
    """Returns `0 <cls> d`, for `<` or `<=`, with positive terms on the right and the tightest constant."""
    g = _content(d)
    free = (d.get((), 0) - (1 if cls is Lt else 0)) // g  # 0 <= t + free, in terms divided by g
    left: Poly = {m: -k // g for m, k in d.items() if m and k < 0}
    right: Poly = {m: k // g for m, k in d.items() if m and k > 0}
    if free >= 0 and not right:
        return Lt(poly_to_expr(left, dtype), const(free + 1, dtype))
    if free < 0:
        return Lt(poly_to_expr(plus(left, {(): -free - 1} if free != -1 else {}), dtype), poly_to_expr(right, dtype))
    if free == 0 or not left:
        return Le(poly_to_expr(plus(left, {(): -free} if free else {}), dtype), poly_to_expr(right, dtype))
    return Lt(poly_to_expr(left, dtype), poly_to_expr(plus(right, {(): free + 1}), dtype))


def equality(cls: type[Comparison], d: Poly, dtype: DType) -> Expr:
    """Returns `0 <cls> d`, for `==` or `!=`, with the first term positive and on the left."""
    g = _content(d)
    first = min([m for m in d if m], key=lambda m: [order_key(x) for x in m])
    if d[first] < 0:
        g = -g
    left: Poly = {m: k // g for m, k in d.items() if m and (k > 0) is (g > 0)}
    right: Poly = {m: -(k // g) for m, k in d.items() if m and (k > 0) is not (g > 0)}
    free = d.get((), 0) // g
    if free:
        side, value = (right, -free) if free < 0 or not right else (left, free)
        side[()] = value
    made: type[Comparison] = Eq if cls is Eq else Ne
    return made(poly_to_expr(left, dtype), poly_to_expr(right, dtype))
