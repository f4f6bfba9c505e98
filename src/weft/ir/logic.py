"""Conjunctions and disjunctions as lists of conditions, freed of those that others imply."""

from __future__ import annotations

from typing import Final

from weft.ir.context import Context
from weft.ir.expr import FALSE, INDEX, TRUE, And, Expr, Le, Lt, Not, Or
from weft.ir.linear import Poly, constant, plus

_LIMIT: Final = 12  # conditions that are compared with one another


def tidied(n: And | Or, ctx: Context) -> Expr | None:
    """Returns *n* without conditions that follow from others, guards before what they guard; None if nothing changes.

    i < 5 and i < 8 -> i < 5        i < 5 or i < 8 -> i < 8        i < 5 and 7 < i -> false
    """
    cls = type(n)
    parts = _parts(n, cls)
    if len(parts) > _LIMIT:
        return None
    kept: list[Expr] = []
    for p in parts:
        if any(_is_redundant(p, q, cls, ctx) for q in kept):
            continue
        if any(_cancel(p, q, cls, ctx) for q in kept):
            return FALSE if cls is And else TRUE
        kept = _with(p, kept, cls, ctx)
    result = kept[0]
    for p in kept[1:]:
        result = cls(result, p)
    return None if result is n else result


def _with(p: Expr, kept: list[Expr], cls: type[And | Or], ctx: Context) -> list[Expr]:
    """Adds *p* in place of the first condition that it makes redundant: what follows may rely on that one as a guard."""
    weaker = [k for k, q in enumerate(kept) if _is_redundant(q, p, cls, ctx)]
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


def _is_redundant(p: Expr, q: Expr, cls: type[And | Or], ctx: Context) -> bool:
    """Answers whether `p <cls> q` is just q: q implies p, or for a disjunction p implies q."""
    if p is q:
        return True
    dp, dq = _slack(p, ctx), _slack(q, ctx)
    if dp is None or dq is None:
        return False
    gap = constant(plus(dp, dq, -1))
    return gap is not None and (gap >= 0 if cls is And else gap <= 0)


def _cancel(p: Expr, q: Expr, cls: type[And | Or], ctx: Context) -> bool:
    """Answers whether p and q never hold together, or for a disjunction never fail together."""
    if (isinstance(p, Not) and p.a is q) or (isinstance(q, Not) and q.a is p):
        return True
    dp, dq = _slack(p, ctx), _slack(q, ctx)
    if dp is None or dq is None:
        return False
    total = constant(plus(dp, dq))
    return total is not None and (total < 0 if cls is And else total >= -1)


def _slack(p: Expr, ctx: Context) -> Poly | None:
    """Returns d for a condition on indices that says `d >= 0`."""
    if not isinstance(p, Lt | Le) or p.a.dtype is not INDEX:
        return None
    d = plus(ctx.poly(p.b), ctx.poly(p.a), -1)
    return plus(d, {(): -1}) if isinstance(p, Lt) else d
