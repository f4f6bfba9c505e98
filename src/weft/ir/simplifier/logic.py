"""Conjunctions and disjunctions as lists of conditions, freed of those that others imply."""

from __future__ import annotations

from typing import Final, TypeAlias

from weft.ir.bounds.polynomial import Poly, constant, plus
from weft.ir.expr.base import INDEX, Expr
from weft.ir.expr.binary import And, Le, Lt, Or
from weft.ir.expr.constructors import FALSE, TRUE
from weft.ir.expr.nodes import Not
from weft.ir.simplifier.context import Context

_LIMIT: Final = 12  # conditions that are compared with one another


Part: TypeAlias = tuple[Expr, Poly | None]
"""A condition, and d if it says `d >= 0` of indices."""


def tidied(n: And | Or, ctx: Context) -> Expr | None:
    """Returns *n* without conditions implied by others, guards before the conditions that they guard; None if nothing changes.

    i < 5 and i < 8 -> i < 5        i < 5 or i < 8 -> i < 8        i < 5 and 7 < i -> false
    """
    cls = type(n)
    parts = _parts(n, cls)
    if len(parts) > _LIMIT:
        return None
    kept: list[Part] = []
    for p in [(e, _slack(e, ctx)) for e in parts]:
        if any(_is_redundant(p, q, cls) for q in kept):
            continue
        if any(_cancel(p, q, cls) for q in kept):
            return FALSE if cls is And else TRUE
        kept = _with(p, kept, cls)
    result = kept[0][0]
    for e, _ in kept[1:]:
        result = cls(result, e)
    return None if result is n else result


def _with(p: Part, kept: list[Part], cls: type[And | Or]) -> list[Part]:
    """Adds *p* in place of the first condition that it makes redundant: later conditions may rely on that one as a guard."""
    weaker = [k for k, q in enumerate(kept) if _is_redundant(q, p, cls)]
    if not weaker:
        return [*kept, p]
    return [p if k == weaker[0] else q for k, q in enumerate(kept) if k == weaker[0] or k not in weaker]


def _parts(n: Expr, cls: type[And | Or]) -> list[Expr]:
    """Returns the operands of nested *cls*, in the order of evaluation; stops soon after the limit."""
    found: list[Expr] = []
    stack: list[Expr] = [n]
    while stack and len(found) <= _LIMIT:
        e = stack.pop()
        if type(e) is cls:
            stack += [e.b, e.a]
        else:
            found.append(e)
    return found


def _is_redundant(p: Part, q: Part, cls: type[And | Or]) -> bool:
    """Answers whether `p <cls> q` is just q: q implies p, or for a disjunction p implies q."""
    if p[0] is q[0]:
        return True
    gap = None if p[1] is None or q[1] is None else constant(plus(p[1], q[1], -1))
    return gap is not None and (gap >= 0 if cls is And else gap <= 0)


def _cancel(p: Part, q: Part, cls: type[And | Or]) -> bool:
    """Answers whether p and q never hold together, or for a disjunction never fail together."""
    a, b = p[0], q[0]
    if (isinstance(a, Not) and a.a is b) or (isinstance(b, Not) and b.a is a):
        return True
    total = None if p[1] is None or q[1] is None else constant(plus(p[1], q[1]))
    return total is not None and (total < 0 if cls is And else total >= -1)


def _slack(p: Expr, ctx: Context) -> Poly | None:
    """Returns d for a condition on indices that says `d >= 0`."""
    if not isinstance(p, Lt | Le) or p.a.dtype is not INDEX:
        return None
    d = plus(ctx.poly(p.b), ctx.poly(p.a), -1)
    return plus(d, {(): -1}) if isinstance(p, Lt) else d
