"""Proofs of conditions under known bounds, the extremes of expressions, and tests for linear ones."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Final

from weft.ir.bounds.bounds import EMPTY, Bounds
from weft.ir.bounds.fold import constant_value
from weft.ir.bounds.polynomial import Poly, add_to, poly_of, poly_to_expr
from weft.ir.expr.base import Expr, Var
from weft.ir.expr.binary import And, Or
from weft.ir.expr.nodes import Const
from weft.ir.expr.rewrite import free_vars, mentions
from weft.ir.simplifier.elimination import extreme
from weft.ir.simplifier.simplify import Simplifier, simplify

_DEGREE: Final = 4  # of polynomials whose extremes are sought


def prove(cond: Expr, bounds: Bounds = EMPTY) -> bool:
    """Answers whether *cond* certainly holds (in every lane) for all variables within *bounds*."""
    pending = [simplify(cond, bounds)]
    while pending:
        c = pending.pop()
        if isinstance(c, And):
            pending += [c.a, c.b]
        elif constant_value(c) is not True and not (isinstance(c, Or) and _either(c, bounds)):
            return False
    return True


def _either(c: Or, bounds: Bounds) -> bool:
    return prove(c.a, bounds) or prove(c.b, bounds)


def extremes(e: Expr, variables: Collection[Var], bounds: Bounds) -> tuple[Expr, Expr] | None:
    """Returns bounds of an index expression, in the other variables, as each of *variables* runs over its range.

    No value lies outside; both are reached where *e* is linear in *variables* and their ranges do not
    depend on one another. Through `//` they stay exact, of `%` they are the whole of its range. None where
    a sign or a range is not known.
    """
    memo = bounds.memo_for("extremes")
    key = (e, *variables)
    if key not in memo:
        memo[key] = _extremes(e, variables, bounds)
    found: tuple[Expr, Expr] | None = memo[key]
    return found


def _extremes(e: Expr, variables: Collection[Var], bounds: Bounds) -> tuple[Expr, Expr] | None:
    context = Simplifier(bounds)
    low = high = context.poly(e)
    if (ends := _ends_of_sum(low, variables, bounds)) is not None:
        return poly_to_expr(ends[0], e.dtype), poly_to_expr(ends[1], e.dtype)
    order = bounds.order
    used = _variables(low)
    if used.isdisjoint(variables):
        same = context.simplify(poly_to_expr(low, e.dtype))
        return same, same
    if any(v not in order for v in variables if v in used):
        return None
    for v in sorted([v for v in variables if v in order], key=lambda v: -order[v]):
        if v not in used:
            continue
        below = _without(v, low, context, top=False)
        above = _without(v, high, context, top=True)
        if below is None or above is None:
            return None
        low, high = below, above
        used = _variables(low) | _variables(high)
    return context.simplify(poly_to_expr(low, e.dtype)), context.simplify(poly_to_expr(high, e.dtype))


def _ends_of_sum(p: Poly, variables: Collection[Var], bounds: Bounds) -> tuple[Poly, Poly] | None:
    """Returns the extremes of a sum of loops over constant ranges, which most are; None for any other."""
    low = high = p.get((), 0)
    rest: Poly = {}
    for m, k in p.items():
        if not m:
            continue
        v = m[0]
        if len(m) > 1 or type(v) is not Var:
            return None
        if v not in variables:
            rest[m] = k
            continue
        begin, end = bounds.ranges.get(v, (None, None))
        if type(begin) is not Const or type(end) is not Const:
            return None
        first, last = k * int(begin.value), k * int(end.value)
        low += min(first, last)
        high += max(first, last)
    return ({**rest, (): low} if low else rest), ({**rest, (): high} if high else rest)


def _variables(p: Poly) -> set[Var]:
    return {v for m in p for atom in m for v in free_vars(atom)}


def _without(v: Var, p: Poly, context: Simplifier, *, top: bool) -> Poly | None:
    """Replaces *v* in each of its powers."""
    for _ in range(_DEGREE):
        bound = extreme(p, v, context, top=top) if _mentions(p, v) else p
        if bound is None or bound is p:
            return bound
        p = bound
    return None


def _mentions(p: Poly, v: Var) -> bool:
    return any(mentions(atom, v) for m in p for atom in m)


def linear_terms(e: Expr, variables: Collection[Var]) -> tuple[Mapping[Var, Expr], Expr] | None:
    """Splits *e* into `sum(coefficient * var) + rest`, neither of which mentions *variables*; None if it is not linear.

    A variable that *e* does not mention has no coefficient.
    """
    memo = EMPTY.memo_for("linear terms")
    key = (e, *variables)
    if key not in memo:
        memo[key] = _linear_terms(e, variables)
    found: tuple[Mapping[Var, Expr], Expr] | None = memo[key]
    return found


def _linear_terms(e: Expr, variables: Collection[Var]) -> tuple[Mapping[Var, Expr], Expr] | None:
    factors: dict[Var, Poly] = {}
    rest: Poly = {}
    for m, k in poly_of(simplify(e)).items():
        inside = [a for a in m if a in variables]
        others = tuple([a for a in m if a not in variables])
        if len(inside) > 1 or any(v in variables for a in others for v in free_vars(a)):
            return None
        if inside:
            (v,) = inside
            assert isinstance(v, Var)
            add_to(factors.setdefault(v, {}), {others: k})
        else:
            rest[m] = k
    return {v: poly_to_expr(p, e.dtype) for v, p in factors.items()}, poly_to_expr(rest, e.dtype)
