"""Bounds of polynomials whose variables have symbolic ranges, by eliminating one variable after another.

A variable is replaced by the end of its range that makes the polynomial smallest, as the sign of its coefficient says, from the
last bound to the first: Fourier-Motzkin elimination for one inequality at a time, taken through
`//`, `%`, `min` and `max` where these are monotone.
"""

from __future__ import annotations

from collections.abc import Iterator
from math import gcd
from typing import Final

from weft.ir.bounds import interval as iv
from weft.ir.bounds.interval import Interval
from weft.ir.bounds.polynomial import (
    Monomial,
    Poly,
    add_to,
    constant,
    plus,
    poly_of,
    poly_to_expr,
    scaled,
    times,
    without,
)
from weft.ir.expr.base import Expr, Var
from weft.ir.expr.binary import FloorDiv, FloorMod, Max, Min
from weft.ir.expr.nodes import Const, Select
from weft.ir.expr.rewrite import free_vars, mentions
from weft.ir.simplifier.context import Context
from weft.ir.simplifier.counterexamples import is_refuted

_FUEL: Final = 16  # nested steps before giving up


def plain_low(p: Poly, ctx: Context) -> int | None:
    """Returns the lower end of the interval of *p* with each term taken by itself."""
    low = 0
    of = ctx.bounds.of
    for m, k in p.items():
        if not m:
            low += k
            continue
        value = of(m[0])
        for atom in m[1:]:
            value = iv.mul(value, of(atom))
        end = value[0] if k > 0 else value[1]
        if end is None:
            return None
        low += k * end
    return low


def range_of_sum(p: Poly, ctx: Context) -> Interval:
    """Returns the interval of *p*, a sum of single variables, for which nothing better `is_worth_it`."""
    low: int | None = 0
    high: int | None = 0
    for m, k in p.items():
        lo, hi = ctx.bounds.of(m[0]) if m else _ONE
        if k < 0:
            lo, hi = hi, lo
        low = None if low is None or lo is None else low + k * lo
        high = None if high is None or hi is None else high + k * hi
    return Interval(low, high)


_ONE: Final = Interval(1, 1)


def lowest(p: Poly, target: int | None, ctx: Context, fuel: int = _FUEL) -> int | None:
    """Returns a constant that *p* never falls below, None if none is found; looks no further than *target*.

    Where some point of the ranges is below *target*, no proof is looked for.
    """
    value = constant(p)
    if value is not None:
        return value
    best = plain_low(p, ctx)
    if fuel <= 0 or not is_worth_it(p, ctx):
        return best
    memo: dict[tuple[frozenset[tuple[Monomial, int]], int | None], tuple[int, int | None]]
    memo = ctx.bounds.memo_for("lowest")
    key = frozenset(p.items()), target
    if key in memo and memo[key][0] >= fuel:
        return memo[key][1]
    if target is not None and is_refuted(p, target, ctx.bounds):
        return best
    choice = next(((m, k) for m, k in p.items() if len(m) == 1 and type(m[0]) in _CHOICES), None)
    if choice is not None:
        best = _better(best, _split_choice(p, *choice, target, ctx, fuel // 2))
    else:
        for attempt in (_relax_division, _eliminate_last):
            if best is not None and target is not None and best >= target:
                break
            best = _better(best, attempt(p, target, ctx, fuel - 1))
    memo[key] = fuel, best
    return best


_CHOICES: Final = frozenset({Min, Max, Select})


def _better(a: int | None, b: int | None) -> int | None:
    return b if a is None else a if b is None else max(a, b)


def is_worth_it(p: Poly, ctx: Context) -> bool:
    """Plain intervals are exact for sums of variables with constant ranges."""
    for m in p:  # noqa: SIM110  (a generator would take longer than the loop)
        if len(m) > 1 or (m and not (type(m[0]) is Var and _has_constant_ends(m[0], ctx))):
            return True
    return False


def _has_constant_ends(v: Var, ctx: Context) -> bool:
    for e in ctx.bounds.ranges.get(v, ()):
        if e is not None and type(e) is not Const and constant(poly_of(e)) is None:
            return False
    return True


def _relax_division(p: Poly, target: int | None, ctx: Context, fuel: int) -> int | None:
    """Replaces the first `c * (x // c)` by x or by `x - c + 1`, whichever makes *p* smaller.

    Where the factor is no multiple of c, some multiple `s * p` is bounded instead: `p >= ceil(least / s)`.
    """
    for m, k in p.items():
        for at, atom in enumerate(m):
            if type(atom) is not FloorDiv:
                continue
            d = ctx.poly(atom.b)
            if len(d) != 1 or not ctx.is_at_least(d, 1):
                continue
            ((dm, dk),) = d.items()
            rest = without(m[:at] + m[at + 1 :], dm)
            if rest is None or (rest and not _is_natural(rest, ctx)):
                continue
            s = dk // gcd(k, dk)
            x = ctx.poly(atom.a)
            if k > 0:
                x = plus(plus(x, d, -1), {(): 1})
            relaxed = plus(scaled(_dropping(p, m), s), times({rest: k * s // dk}, x))
            least = lowest(relaxed, None if target is None else s * (target - 1) + 1, ctx, fuel)
            return None if least is None else -(-least // s)
    return None


def _is_natural(m: Monomial, ctx: Context) -> bool:
    return ctx.is_at_least({m: 1}, 0)


def _dropping(p: Poly, m: Monomial) -> Poly:
    return {n: k for n, k in p.items() if n is not m}


def _split_choice(p: Poly, m: Monomial, k: int, target: int | None, ctx: Context, fuel: int) -> int | None:
    """Bounds *p* for each value that `k * m` can take, a `min`, `max` or `select`."""
    atom = m[0]
    a, b = (atom.then, atom.other) if isinstance(atom, Select) else (atom.a, atom.b)  # type: ignore[attr-defined]
    rest = _dropping(p, m)
    found = [lowest(plus(rest, ctx.poly(x), k), target, ctx, fuel) for x in (a, b)]
    known = [x for x in found if x is not None]
    # k * max(a, b) is at least k*a and at least k*b if k > 0, so the better one will do; k * min(a, b) is one of them
    if type(atom) is (Max if k > 0 else Min):
        return max(known, default=None)
    return min(known) if len(known) == 2 else None


def _eliminate_last(p: Poly, target: int | None, ctx: Context, fuel: int) -> int | None:
    for v in variables(p, ctx):
        reduced = extreme(p, v, ctx, top=False)
        if reduced is not None and reduced != p:
            return lowest(reduced, target, ctx, fuel)
    return None


def variables(p: Poly, ctx: Context) -> Iterator[Var]:
    """Yields the variables of *p* that have a range, the last bound first."""
    order = ctx.bounds.order
    found = {v for m in p for atom in m for v in free_vars(atom) if v in order}
    return iter(sorted(found, key=lambda v: -order[v]))


def extreme(p: Poly, v: Var, ctx: Context, *, top: bool) -> Poly | None:
    """Returns a bound of *p*, from above if *top*, in which *v* has been replaced; None where that cannot be done.

    The bound is reached where *p* is linear in *v*, or monotone through one division. Of a power of *v* one factor is
    replaced, so that the bound still speaks of *v*, in a lower degree.
    """
    rest: Poly = {}
    by_atom: dict[Expr, Poly] = {}
    for m, k in p.items():
        touched = [a for a in m if mentions(a, v)]
        if not touched:
            rest[m] = k
        elif touched.count(touched[0]) < len(touched):
            return None
        else:
            at = m.index(touched[0])
            add_to(by_atom.setdefault(touched[0], {}), {m[:at] + m[at + 1 :]: k})
    for atom, factor in by_atom.items():
        if ctx.is_at_least(factor, 0):
            end = _end(atom, v, ctx, top=top)
        elif ctx.is_at_least(scaled(factor, -1), 0):
            end = _end(atom, v, ctx, top=not top)
        else:
            return None
        if end is None:
            return None
        add_to(rest, times(factor, end))
    return rest


def _end(atom: Expr, v: Var, ctx: Context, *, top: bool) -> Poly | None:
    """Returns the largest (*top*) or smallest value of *atom* as *v* varies, without *v*."""
    if atom is v:
        end = ctx.bounds.ranges[v][top]
        return None if end is None else ctx.poly(end)
    found: Poly | None = None
    if type(atom) is FloorDiv:
        found = _end_of_quotient(atom, v, ctx, top=top)
    elif type(atom) is FloorMod and not mentions(atom.b, v):
        d = ctx.poly(atom.b)
        if ctx.is_at_least(d, 1):
            found = plus(d, {(): -1}) if top else {}
    elif type(atom) in (Min, Max):
        a = extreme(ctx.poly(atom.a), v, ctx, top=top)  # type: ignore[attr-defined]
        b = extreme(ctx.poly(atom.b), v, ctx, top=top)  # type: ignore[attr-defined]
        if a is not None and b is not None:
            found = ctx.poly(type(atom)(poly_to_expr(a, atom.dtype), poly_to_expr(b, atom.dtype)))  # type: ignore[call-arg]
    if found is None:
        plain = ctx.bounds.of(atom)[top]
        return None if plain is None else {(): plain} if plain else {}
    return found


def _end_of_quotient(atom: FloorDiv, v: Var, ctx: Context, *, top: bool) -> Poly | None:
    if mentions(atom.b, v):
        return None
    d = ctx.poly(atom.b)
    x = extreme(ctx.poly(atom.a), v, ctx, top=top)
    return ctx.quotient(x, d, atom.dtype) if x is not None and ctx.is_at_least(d, 1) else None
