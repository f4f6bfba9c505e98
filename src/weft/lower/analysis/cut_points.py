"""Points at which to partition a loop so that most iterations need no guard: solves conditions for the loop's variable."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from weft.ir import (
    FALSE,
    INDEX,
    ONE,
    ZERO,
    Bounds,
    Const,
    Eq,
    Expr,
    FloorDiv,
    FloorMod,
    Le,
    Lt,
    Node,
    Var,
    extremes,
    free_vars,
    map_nodes,
    maximum,
    minimum,
    poly_of,
    poly_to_expr,
    post_order,
    prove,
    simplify,
)
from weft.loop import For, Stmt, statements
from weft.lower.stmt_rewriter import extent_bounds


@dataclass(frozen=True)
class Cut:
    """The iterations *begin* up to *end* of a loop, in which the conditions *true* hold."""

    begin: Expr
    end: Expr
    true: tuple[Expr, ...]


@dataclass(frozen=True)
class Digit:
    """A digit of a fused loop's variable, such as `v // c % extent`: it takes the values 0 up to *extent* again and again."""

    index: Expr
    extent: Expr

    def cut(self, guards: Iterable[Expr], loop: For, bounds: Bounds) -> Cut | None:
        """Returns the values for which most of *guards* hold, if any of them depend on this digit alone."""
        v = Var("digit")
        alone = For(v, ZERO, self.extent, loop.kind, loop.body, ())
        found: list[Cut] = []
        for g in guards:
            swapped = map_nodes(g, None, memo={self.index: v})
            used = free_vars(swapped)
            cut = range_of(swapped, alone, bounds) if v in used and loop.var not in used else None
            if cut is not None:
                found.append(Cut(cut.begin, cut.end, (g,) if cut.true else ()))
        return best_cut(found, alone, bounds) if found else None


def digits_of(guards: Iterable[Expr], loop: For, bounds: Bounds) -> list[Digit]:
    """Returns the digits of the loop's variable v in *guards*: `v % c`, `v // b % c`, and `v // c` of a loop from zero.

    The divisors are constants or expressions of sizes.
    """

    def quotient_of(n: Node) -> Expr | None:
        """Returns v of `v // c`."""
        return n.a if isinstance(n, FloorDiv) and _is_fixed(n.b, bounds) else None

    found: dict[Expr, Expr] = {}
    for n in [n for g in guards for n in post_order(g)]:
        if isinstance(n, FloorMod) and _is_fixed(n.b, bounds) and loop.var in (n.a, quotient_of(n.a)):
            found[n] = n.b
        elif isinstance(n, FloorDiv) and quotient_of(n) is loop.var and loop.begin is ZERO:
            found[n] = simplify((loop.extent + (n.b - ONE)) // n.b, bounds)
    return [Digit(i, e) for i, e in found.items()]


def _is_fixed(e: Expr, bounds: Bounds) -> bool:
    """Tells whether *e* is a positive constant, or an expression of sizes that is positive."""
    return e.dtype is INDEX and all(_is_size(v, bounds) for v in free_vars(e)) and prove(e > ZERO, bounds)


def range_of(guard: Expr, loop: For, bounds: Bounds) -> Cut | None:
    """Returns the iterations of *loop* in which *guard* holds whatever the loops inside it do; None if that isn't clear."""
    if isinstance(guard, Eq):
        return _first_only(guard, loop, bounds)
    if not isinstance(guard, Lt | Le) or guard.a.dtype is not INDEX:
        return None
    outer = extent_bounds(bounds, loop)
    inner = [v for v in free_vars(guard) if v is not loop.var and v not in outer.ranges and not v.dtype.is_bool]
    inside = _bounds_inside(loop.body, outer)
    room = guard.b - guard.a - (ONE if isinstance(guard, Lt) else ZERO)  # the guard holds where this is at least 0
    ends = extremes(room, inner, inside)
    return None if ends is None else _solve(ends[0], guard, loop, bounds)


def _bounds_inside(body: Stmt, outer: Bounds) -> Bounds:
    """Returns *outer* with the ranges of all loops in *body*."""
    memo = outer.memo_for("loops inside")
    found: Bounds = memo.get(body, outer)
    if found is outer:
        for s in statements(body):
            if isinstance(s, For):
                found = extent_bounds(found, s)
        if found is not outer:  # which would keep itself
            memo[body] = found
    return found


def _solve(least: Expr, guard: Expr, loop: For, bounds: Bounds) -> Cut | None:
    """Solves `least >= 0` for the loop's variable, in which it must be linear."""
    p = poly_of(least)
    slope = p.pop((loop.var,), 0)
    if not slope or any(
        loop.var in free_vars(a) or (a in bounds.ranges and not _is_size(a, bounds)) for m in p for a in m
    ):
        return None
    rest = poly_to_expr(p, INDEX)
    end = loop.begin + loop.extent
    if slope > 0:  # v >= -rest / slope, rounded up
        first = simplify((slope - 1 - rest) // slope, bounds)
        return _clamped(first, end, guard, loop, bounds)
    return _clamped(loop.begin, simplify(rest // -slope + ONE, bounds), guard, loop, bounds)


def _is_size(v: Expr, bounds: Bounds) -> bool:
    """Answers whether *v* is a size, which is at least one and has no upper bound, rather than a loop's variable."""
    return isinstance(v, Var) and v in bounds.ranges and bounds.ranges[v][1] is None


def _clamped(first: Expr, after: Expr, guard: Expr, loop: For, bounds: Bounds) -> Cut | None:
    """Returns the cut from *first* up to *after*, kept inside the loop."""
    end = loop.begin + loop.extent
    begin = first if first is loop.begin or prove(loop.begin <= first, bounds) else maximum(loop.begin, first)
    begin = simplify(begin if prove(begin <= end, bounds) else minimum(begin, end), bounds)
    stop = simplify(after if after is end or prove(after <= end, bounds) else minimum(end, after), bounds)
    if prove(stop <= begin, bounds):
        return None
    if not prove(begin <= stop, bounds):
        stop = maximum(stop, begin)
    return Cut(begin, stop, (guard,))


def _first_only(guard: Eq, loop: For, bounds: Bounds) -> Cut | None:
    """Returns the first iteration alone, where *guard* never holds after it."""
    later = bounds.bind(loop.var, loop.begin + ONE, loop.begin + loop.extent - ONE)
    if simplify(guard, _bounds_inside(loop.body, later)) is not FALSE:
        return None
    return Cut(loop.begin + ONE, loop.begin + loop.extent, ())


def best_cut(found: list[Cut], loop: For, bounds: Bounds) -> Cut | None:
    """Returns the part in which the most guards hold, as long as it is most of the loop; the longest cuts go first."""
    chosen: Cut | None = None
    for c in sorted(found, key=lambda c: -length_of(simplify(c.end - c.begin, bounds))):
        both = c if chosen is None else _meet(chosen, c, bounds)
        length, whole = length_of(simplify(both.end - both.begin, bounds)), length_of(loop.extent)
        if chosen is None or length * 2 >= whole:
            chosen = both
    if chosen is None or (chosen.begin is loop.begin and chosen.end is loop.begin + loop.extent and not chosen.true):
        return None
    return chosen


def _meet(a: Cut, b: Cut, bounds: Bounds) -> Cut:
    begin = simplify(maximum(a.begin, b.begin), bounds)
    end = simplify(minimum(a.end, b.end), bounds)
    return Cut(begin, end if prove(begin <= end, bounds) else maximum(begin, end), a.true + b.true)


def length_of(extent: Expr) -> float:
    """Returns a constant extent; a symbolic one is longer than any."""
    return int(extent.value) if isinstance(extent, Const) else float("inf")
