"""Canonical forms of `//` and `%`: digits `(x // lower) % extent`, with multiples of the divisor taken out.

Everything here rests on a few facts, for integers and a positive divisor c:
    (q*c + r) // c = q + r // c                     (q*c + r) % c = r % c
    (g*t + s) // (g*c) = t // c,  if 0 <= s < g      (g*t + s) % (g*c) = g*(t % c) + s
    (x // a) // c = x // (a*c),   if a > 0           (x % (a*c)) // c = (x // c) % a
A divisor is one term `k*m*n...`; its symbols are divided out like numbers.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from math import gcd

from weft.ir.bounds.polynomial import Monomial, Poly, add_to, constant, join, plus, poly_to_expr, scaled, times, without
from weft.ir.expr.base import Expr
from weft.ir.expr.binary import FloorDiv, FloorMod
from weft.ir.simplifier.context import Context
from weft.support.dtypes import DType


@dataclass(frozen=True, slots=True)
class Term:
    """A monomial with its coefficient."""

    monomial: Monomial
    factor: int

    @property
    def poly(self) -> Poly:
        """The term as a polynomial."""
        return {self.monomial: self.factor}

    def over(self, d: Term) -> Term | None:
        """Returns `self / d` if that is exact."""
        if self.factor % d.factor:
            return None
        rest = without(self.monomial, d.monomial)
        return None if rest is None else Term(rest, self.factor // d.factor)


def _common(m: Monomial, n: Monomial) -> Monomial:
    rest = list(n)
    shared = []
    for atom in m:
        if atom in rest:
            rest.remove(atom)
            shared.append(atom)
    return tuple(shared)


def divide_exact(p: Poly, d: Term) -> tuple[Poly, Poly]:
    """Splits *p* into `q*d + r`: *q* takes the terms that *d* divides, and a constant's whole multiples of it."""
    q: Poly = {}
    r: Poly = {}
    for m, k in p.items():
        rest = without(m, d.monomial)
        if rest is None or (m and k % d.factor):
            r[m] = k
        elif m:
            add_to(q, {rest: k // d.factor})
        else:
            add_to(q, {(): k // d.factor} if k // d.factor else {})
            add_to(r, {(): k % d.factor} if k % d.factor else {})
    return q, r


def floordiv(p: Poly, d: Poly, dtype: DType, ctx: Context) -> Poly:
    """Returns the canonical form of `p // d`; a zero divisor is left alone."""
    if len(d) != 1:
        return _by_sum(p, d, dtype, ctx)[0]
    ((m, k),) = d.items()
    if k < 0:
        return floordiv(scaled(p, -1), {m: -k}, dtype, ctx)
    return _quotient(p, Term(m, k), dtype, ctx)


def floormod(p: Poly, d: Poly, dtype: DType, ctx: Context) -> Poly:
    """Returns the canonical form of `p % d`; a zero divisor is left alone."""
    if len(d) != 1:
        return _by_sum(p, d, dtype, ctx)[1]
    ((m, k),) = d.items()
    if k < 0:
        return scaled(floormod(scaled(p, -1), {m: -k}, dtype, ctx), -1)
    return _remainder(p, Term(m, k), dtype, ctx)


def _quotient(p: Poly, d: Term, dtype: DType, ctx: Context) -> Poly:
    result: Poly = {}
    while True:
        q, p = divide_exact(p, d)
        add_to(result, q)
        if not p:
            return result
        if not _is_positive(d, ctx):
            break
        whole = block(p, d, ctx)
        if whole is not None:
            return plus(result, {(): whole} if whole else {})
        reduced = _coarser(p, d, ctx)
        if reduced is not None:
            t, _, _, d = reduced
            p = t
            continue
        nested = _nested(p, d, dtype, ctx)
        if nested is None:
            break
        if isinstance(nested, dict):
            return plus(result, nested)
        p, d = nested
    return plus(result, {(FloorDiv(poly_to_expr(p, dtype), poly_to_expr(d.poly, dtype)),): 1})


def _remainder(p: Poly, d: Term, dtype: DType, ctx: Context) -> Poly:
    result: Poly = {}
    scale: Poly = {(): 1}
    while True:
        _, p = divide_exact(p, d)
        if not p:
            return result
        if not _is_positive(d, ctx):
            break
        p = _without_mods(p, d, ctx)
        _, p = divide_exact(p, d)
        whole = block(p, d, ctx)
        if whole is not None:
            return plus(result, times(scale, plus(p, d.poly, -whole)))
        reduced = _coarser(p, d, ctx)
        if reduced is None:
            break
        p, s, g, d = reduced
        add_to(result, times(scale, s))
        scale = times(scale, g.poly)
    return plus(result, times(scale, {(FloorMod(poly_to_expr(p, dtype), poly_to_expr(d.poly, dtype)),): 1}))


def _is_positive(d: Term, ctx: Context) -> bool:
    if not d.monomial or ctx.is_at_least(d.poly, 1):
        return True
    return all(_holds_in_loops(plus({(atom,): 1}, {(): -1}), ctx) for atom in d.monomial)


def _holds_in_loops(p: Poly, ctx: Context) -> bool:
    """Tells whether `p >= 0` wherever no variable's range is empty: inside of loops, which then have an iteration.

    Only divisors may rest on that: a quotient that is evaluated elsewhere, where they are 0, has no value in any case.
    """
    memo = ctx.bounds.memo_for("in loops")
    key = frozenset(p.items())
    if key not in memo:
        memo[key] = ctx.is_at_least(p, 0) or any(
            ctx.is_at_least(plus(p, plus(ctx.poly(high), ctx.poly(low), -1), -1), 0)
            for low, high in ctx.bounds.ranges.values()
            if low is not None and high is not None and not p.keys().isdisjoint(ctx.poly(high))
        )
    found: bool = memo[key]
    return found


def block(p: Poly, d: Term, ctx: Context) -> int | None:
    """Returns the constant that `p // d` always is, if there is one."""
    value = constant(p)
    if not d.monomial:
        if value is not None:
            return value // d.factor
        lo, hi = ctx.range(p)
        return lo // d.factor if lo is not None and hi is not None and lo // d.factor == hi // d.factor else None
    if ctx.is_at_least(p, 0):
        return 0 if ctx.is_at_least(plus(d.poly, p, -1), 1) else None
    return -1 if ctx.is_at_least(scaled(p, -1), 1) and ctx.is_at_least(plus(d.poly, p), 0) else None


def _coarser(p: Poly, d: Term, ctx: Context) -> tuple[Poly, Poly, Term, Term] | None:
    """Finds g with `p = g*t + s`, `d = g*c` and `0 <= s < g`; returns t, s, g and c."""
    for g in _candidates(p, d):
        t, s = _split(p, g)
        whole = block(s, g, ctx) if s else 0
        if whole is not None and t:
            c = Term(d.monomial, d.factor).over(g)
            assert c is not None
            if whole:
                add_to(t, {(): whole})
                s = plus(s, g.poly, -whole)
            return t, s, g, c
    return None


def _split(p: Poly, g: Term) -> tuple[Poly, Poly]:
    t: Poly = {}
    s: Poly = {}
    for m, k in p.items():
        rest = without(m, g.monomial) if k % g.factor == 0 else None
        (s if rest is None else t)[m if rest is None else rest] = k if rest is None else k // g.factor
    return t, s


def _candidates(p: Poly, d: Term) -> Iterator[Term]:
    """Yields the common factors of *d* with single terms of *p*, the largest first."""
    found: dict[tuple[Monomial, int], None] = {}
    for m, k in p.items():
        if m:
            shared = _common(d.monomial, m), gcd(k, d.factor)
            if shared != ((), 1):
                found[shared] = None
    for m, k in sorted(found, key=lambda c: (-len(c[0]), -c[1])):
        yield Term(m, k)


def _nested(p: Poly, d: Term, dtype: DType, ctx: Context) -> Poly | tuple[Poly, Term] | None:
    """Merges a division of a division; turns the quotient of a remainder into a digit."""
    offset = p.get((), 0)
    if len(p) != (2 if offset else 1):
        return None
    m, k = next((m, k) for m, k in p.items() if m)
    if len(m) != 1 or k != 1:
        return None
    atom = m[0]
    if type(atom) is FloorDiv:
        a = _as_term(atom.b, ctx)
        if a is not None and _is_positive(a, ctx):
            return plus(ctx.poly(atom.a), a.poly, offset), Term(join(a.monomial, d.monomial), a.factor * d.factor)
    if type(atom) is FloorMod and not offset:
        a = _as_term(atom.b, ctx)
        ratio = a and a.over(d)
        if ratio is not None and _is_positive(ratio, ctx):
            return floormod(floordiv(ctx.poly(atom.a), d.poly, dtype, ctx), ratio.poly, dtype, ctx)
    return None


def _as_term(e: Expr, ctx: Context) -> Term | None:
    p = ctx.poly(e)
    if len(p) != 1:
        return None
    ((m, k),) = p.items()
    return Term(m, k)


def _without_mods(p: Poly, d: Term, ctx: Context) -> Poly:
    """Replaces `x % a` by x where its factor makes the difference a multiple of *d*."""
    result: Poly = {}
    for m, k in p.items():
        at = next((i for i, atom in enumerate(m) if type(atom) is FloorMod and _vanishes(m, k, i, d, ctx)), None)
        if at is None:
            add_to(result, {m: k})
        else:
            atom = m[at]
            assert type(atom) is FloorMod
            add_to(result, times({m[:at] + m[at + 1 :]: k}, ctx.poly(atom.a)))
    return result


def _vanishes(m: Monomial, k: int, at: int, d: Term, ctx: Context) -> bool:
    atom = m[at]
    assert type(atom) is FloorMod
    a = _as_term(atom.b, ctx)
    if a is None:
        return False
    return Term(join(m[:at] + m[at + 1 :], a.monomial), k * a.factor).over(d) is not None


def _by_sum(p: Poly, d: Poly, dtype: DType, ctx: Context) -> tuple[Poly, Poly]:
    """Divides by a sum, such as `n + 1`: polynomial long division, kept only where the remainder is known to fit."""
    q, r = long_division(p, d) if d else ({}, p)
    if not r and d:
        return q, {}
    if d and ctx.is_at_least(d, 1):
        if ctx.is_at_least(r, 0):
            if ctx.is_at_least(plus(d, r, -1), 1):
                return q, r
        elif ctx.is_at_least(scaled(r, -1), 1) and ctx.is_at_least(plus(d, r), 0):
            return plus(q, {(): -1}), plus(r, d)
    a, b = poly_to_expr(p, dtype), poly_to_expr(d, dtype)
    return {(FloorDiv(a, b),): 1}, {(FloorMod(a, b),): 1}


def long_division(p: Poly, d: Poly) -> tuple[Poly, Poly]:
    """Returns q and r with `p = q*d + r` and no term of *r* divisible by the leading term of *d* (its highest degree)."""
    lead = max(d, key=len)
    head = Term(lead, d[lead])
    q: Poly = {}
    r = dict(p)
    for _ in range(64):
        step = next((t for m, k in r.items() if (t := Term(m, k).over(head)) is not None), None)
        if step is None or not lead:
            break
        add_to(q, step.poly)
        r = plus(r, times(step.poly, d), -1)
    return q, r
