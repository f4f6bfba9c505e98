"""Learning from a condition: the bounds inside a branch or under a guard."""

from __future__ import annotations

from weft.ir.bounds.bounds import Bounds
from weft.ir.bounds.polynomial import Poly, plus, poly_to_expr, scaled
from weft.ir.expr.base import INDEX, Expr, Var
from weft.ir.expr.binary import And, Eq, Le, Lt
from weft.ir.expr.constructors import maximum, minimum
from weft.ir.expr.rewrite import free_vars
from weft.ir.simplifier.simplify import Simplifier


def assume(cond: Expr, bounds: Bounds) -> Bounds:
    """Returns *bounds* narrowed by the limits that *cond* sets for single variables; its other conditions are ignored.

    Each conjunct `a < b`, `a <= b` or `a == b` of indices bounds the variable that was bound last, in terms of the others:
    `io*4 + ii < n` makes the upper end of ii `min(its old end, n - io*4 - 1)`.
    """
    pending = [Simplifier(bounds).simplify(cond)]
    while pending:
        c = pending.pop()
        if isinstance(c, And):
            pending += [c.b, c.a]
        elif isinstance(c, Lt | Le | Eq) and c.a.dtype is INDEX:
            context = Simplifier(bounds)
            d = plus(context.poly(c.b), context.poly(c.a), -1)
            bounds = _learn(plus(d, {(): -1}) if isinstance(c, Lt) else d, bounds)
            if isinstance(c, Eq):
                bounds = _learn(scaled(d, -1), bounds)
    return bounds


def _learn(p: Poly, bounds: Bounds) -> Bounds:
    """Narrows one variable of `p >= 0`."""
    single = [m[0] for m in p if len(m) == 1 and isinstance(m[0], Var)]
    for v in sorted(single, key=lambda v: -bounds.order.get(v, -1)):
        k = p[(v,)]
        rest = {m: c for m, c in p.items() if m != (v,)}
        others = {x for m in rest for atom in m for x in free_vars(atom)}
        if v not in _closure(others, bounds):
            return _narrow(v, k, rest, bounds)
    return bounds


def _closure(found: set[Var], bounds: Bounds) -> set[Var]:
    """Returns the variables *found* and, transitively, those that the ends of their ranges mention."""
    pending = list(found)
    while pending:
        ends = bounds.ranges.get(pending.pop(), ())
        new = {v for e in ends if e is not None for v in free_vars(e)} - found
        found |= new
        pending += new
    return found


def _narrow(v: Var, k: int, rest: Poly, bounds: Bounds) -> Bounds:
    """Applies `k*v + rest >= 0`."""
    context = Simplifier(bounds)
    lo, hi = bounds.ranges.get(v, (None, None))
    if k < 0:
        end = poly_to_expr(context.quotient(rest, {(): -k}, INDEX), INDEX)
        hi = end if hi is None else context.simplify(minimum(hi, end))
    else:
        end = poly_to_expr(scaled(context.quotient(rest, {(): k}, INDEX), -1), INDEX)
        lo = end if lo is None else context.simplify(maximum(lo, end))
    return bounds.with_range(v, lo, hi)
