"""Recombines digits in sums: `x // c * c + x % c` becomes x, and two adjacent digits of a value become one."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from weft.ir.bounds.polynomial import Monomial, Poly, join, plus, times, without
from weft.ir.expr.base import Expr, Var
from weft.ir.expr.binary import FloorDiv, FloorMod
from weft.ir.simplifier.context import Context


def recombine(p: Poly, ctx: Context) -> Poly:
    """Returns *p* with the digits of one value merged as far as they go."""
    while True:
        shorter = next((q for attempt in _ATTEMPTS for q in attempt(p, ctx)), None)
        if shorter is None:
            return p
        p = shorter


def _atoms(p: Poly, cls: type[Expr]) -> Iterator[tuple[Monomial, int, Expr]]:
    """Yields each `k * rest * atom` of *p* with an atom of class *cls*, as (rest, k, atom)."""
    for m, k in p.items():
        for at, atom in enumerate(m):
            if type(atom) is cls:
                yield m[:at] + m[at + 1 :], k, atom


def _is_part(part: Poly, p: Poly) -> bool:
    """Answers whether all terms of *part* but sums of plain variables stand in *p* as they are."""
    return all(p.get(m) == k for m, k in part.items() if any(type(a) is not Var for a in m))


def _whole(p: Poly, ctx: Context) -> Iterator[Poly]:
    """`k*c*(x // c) + k*(x % c)` is `k*x`."""
    for rest, k, atom in _atoms(p, FloorMod) if _has_division(p) else ():
        d = ctx.poly(atom.b)  # type: ignore[attr-defined]
        x = ctx.poly(atom.a)  # type: ignore[attr-defined]
        q = ctx.quotient(x, d, atom.dtype)
        high = times({rest: k}, times(d, q))
        if _has_division(q) and _is_part(high, p):
            low = {join(rest, (atom,)): k}
            yield plus(plus(plus(p, high, -1), low, -1), times({rest: k}, x))


def _congruent(p: Poly, ctx: Context) -> Iterator[Poly]:
    """`k*c*(x // c) + k*(y % c)` is `k*x` where x and y are congruent modulo c.

    So it is for `x = i % (a*c) + j` and `y = i + j`: of y, the canonical form of a digit leaves out what c divides.
    """
    for rest, k, digit in _atoms(p, FloorMod):
        for above, n, quotient in _atoms(p, FloorDiv):
            if quotient.b is not digit.b:  # type: ignore[attr-defined]
                continue
            d = ctx.poly(digit.b)  # type: ignore[attr-defined]
            if times({rest: k}, d) != {above: n}:
                continue
            x, y = ctx.poly(quotient.a), ctx.poly(digit.a)  # type: ignore[attr-defined]
            if not ctx.remainder(plus(x, y, -1), d, digit.dtype):
                left = plus(plus(p, {join(rest, (digit,)): -k}), {join(above, (quotient,)): -n})
                yield plus(left, times({rest: k}, x))


def _congruent_neighbours(p: Poly, ctx: Context) -> Iterator[Poly]:
    """`k*(y % b) + k*b*(x // b % a)` is `k*(x % (a*b))` where x and y are congruent modulo b."""
    digits = list(_atoms(p, FloorMod))
    for rest, k, low in digits if len(digits) > 1 else ():
        b, y = ctx.poly(low.b), ctx.poly(low.a)  # type: ignore[attr-defined]
        for above, n, high in digits:
            quotient = high.a  # type: ignore[attr-defined]
            if type(quotient) is not FloorDiv or quotient.b is not low.b:  # type: ignore[attr-defined]
                continue
            x = ctx.poly(quotient.a)
            if times({rest: k}, b) != {above: n} or ctx.remainder(plus(x, y, -1), b, low.dtype):
                continue
            left = plus(plus(p, {join(rest, (low,)): -k}), {join(above, (high,)): -n})
            merged = ctx.remainder(x, times(ctx.poly(high.b), b), low.dtype)  # type: ignore[attr-defined]
            yield plus(left, times({rest: k}, merged))


def _has_division(q: Poly) -> bool:
    return any(type(a) is FloorDiv for m in q for a in m)


def _neighbours(p: Poly, ctx: Context) -> Iterator[Poly]:
    """`k*(x % b) + k*b*((x // b + y) % a)` is `k*((x + b*y) % (a*b))`."""
    digits = list(_atoms(p, FloorMod))
    for rest, k, low in digits if len(digits) > 1 else ():
        b = ctx.poly(low.b)  # type: ignore[attr-defined]
        x = ctx.poly(low.a)  # type: ignore[attr-defined]
        q = ctx.quotient(x, b, low.dtype)
        for _, _, high in digits:
            wide = ctx.poly(high.a)  # type: ignore[attr-defined]
            if high is low or not q or any(wide.get(m) != n for m, n in q.items()):
                continue
            a = ctx.poly(high.b)  # type: ignore[attr-defined]
            above = times({rest: k}, times(b, {(high,): 1}))
            if _is_part(above, p):
                merged = ctx.remainder(plus(x, times(b, plus(wide, q, -1))), times(a, b), low.dtype)
                yield plus(plus(plus(p, above, -1), {join(rest, (low,)): -k}), times({rest: k}, merged))


def _remainder(p: Poly, ctx: Context) -> Iterator[Poly]:
    """`k*x - k*c*(x // c)` is `k*(x % c)`."""
    for rest, k, atom in _atoms(p, FloorDiv):
        d = ctx.poly(atom.b)  # type: ignore[attr-defined]
        if len(d) != 1:
            continue
        ((dm, dk),) = d.items()
        outer = without(rest, dm)
        if outer is None or k % dk:
            continue
        x = {m: c for m, c in ctx.poly(atom.a).items() if m}  # type: ignore[attr-defined]
        whole = times({outer: -(k // dk)}, x)
        if all(p.get(m) == c for m, c in whole.items()):
            free = ctx.poly(atom.a).get((), 0)  # type: ignore[attr-defined]
            left = plus(plus(p, whole, -1), {join(rest, (atom,)): -k})
            digit = plus(ctx.remainder(ctx.poly(atom.a), d, atom.dtype), {(): -free} if free else {})  # type: ignore[attr-defined]
            yield plus(left, times({outer: -(k // dk)}, digit))


_ATTEMPTS: Final = (_whole, _congruent, _neighbours, _congruent_neighbours, _remainder)
