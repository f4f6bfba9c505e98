"""Questions about expressions under known bounds: is a condition certain, what are an expression's extremes, is it linear."""

from __future__ import annotations

from collections.abc import Collection
from typing import Final

from weft.ir.bounds import EMPTY, Bounds
from weft.ir.elimination import extreme
from weft.ir.expr import And, Expr, Or, Var
from weft.ir.fold import constant_value
from weft.ir.linear import Poly, add_to, build, poly_of
from weft.ir.rewrite import free_vars, mentions
from weft.ir.simplify import Simplifier, simplify

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
    order = bounds.order
    used = _variables(low)
    if used.isdisjoint(variables):
        same = context.simplify(build(low, e.dtype))
        return same, same
    if any(v not in order for v in variables if v in used):
        return None
    for v in sorted([v for v in variables if v in order], key=lambda v: -order[v]):
        if v not in used:
            continue
        below = _without(v, low, False, context)
        above = _without(v, high, True, context)
        if below is None or above is None:
            return None
        low, high = below, above
        used = _variables(low) | _variables(high)
    return context.simplify(build(low, e.dtype)), context.simplify(build(high, e.dtype))


def _variables(p: Poly) -> set[Var]:
    return {v for m in p for atom in m for v in free_vars(atom)}


def _without(v: Var, p: Poly, top: bool, context: Simplifier) -> Poly | None:
    """Replaces *v* in each of its powers."""
    for _ in range(_DEGREE):
        bound = extreme(p, v, top, context) if _mentions(p, v) else p
        if bound is None or bound is p:
            return bound
        p = bound
    return None


def _mentions(p: Poly, v: Var) -> bool:
    return any(mentions(atom, v) for m in p for atom in m)


def linear_terms(e: Expr, variables: Collection[Var]) -> tuple[dict[Var, Expr], Expr] | None:
    """Splits *e* into `sum(coefficient * var) + rest`, neither of which mentions *variables*; None if it is not linear.

    A variable that *e* does not mention has no coefficient.
    """
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
    return {v: build(p, e.dtype) for v, p in factors.items()}, build(rest, e.dtype)
