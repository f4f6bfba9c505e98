"""Whether two threads of a block may access the same element; conservative: when in doubt, they may."""

from __future__ import annotations

from collections.abc import Mapping

from weft.ir import (
    ONE,
    TRUE,
    ZERO,
    Bounds,
    Const,
    Expr,
    FloorMod,
    Monomial,
    Poly,
    Var,
    detect_iter_map,
    free_vars,
    index,
    poly_of,
    poly_to_expr,
    prove,
    simplify,
    substitute,
)
from weft.loop import For, bound_vars, meet
from weft.lower.analysis.barrier_intervals import ThreadAccess, ThreadSpot, position, within
from weft.lower.analysis.grid_shape import THREADS, axis_of
from weft.targets import Sight, sight_of

Indices = tuple[Expr, ...]


def conflicts(
    a: ThreadAccess,
    b: ThreadAccess,
    carrier: ThreadSpot | None,
    axes: Mapping[str, int],
    bounds: Bounds,
    *,
    next_only: bool = False,
) -> bool:
    """Tells whether *b* may access an element that *a* accessed before in another thread, where one of them writes.

    With a *carrier*, a serial loop around both, *b* happens in a later iteration of it, or in the *next* alone. The iterations
    of a bound loop around both are independent, as the schedule has checked. In memory private to a thread only flow
    dependences (a write, then a read) matter, and a value that all threads write is in each thread's memory. Atomic updates do
    not conflict with one another.
    """
    private = sight_of(a.buffer.scope) is Sight.THREAD
    if a.buffer is not b.buffer or not (a.writes if private else a.writes or b.writes) or (private and b.writes):
        return False
    if a.is_atomic and b.is_atomic:
        return False
    free = open_axes(a, b, carrier, axes)
    if not free:
        return False
    if a.indices is None or b.indices is None:
        return True
    pair = _Pair(a, b, _common(a, b, carrier), bounds, carrier, next_only=next_only)
    return not (pair.is_apart() or pair.is_of_one_thread(free) or pair.is_same_place_of_one(free))


def open_axes(a: ThreadAccess, b: ThreadAccess, carrier: ThreadSpot | None, axes: Mapping[str, int]) -> dict[str, int]:
    """Returns those of *axes* along which the two may be different threads: those without a common loop around both."""
    common = _common(a, b, carrier)
    decided = {axis_of(p.stmt) for p in common.outwards()} if common is not None else set()
    return {x: n for x, n in axes.items() if x not in decided and n > 1}


def unknown_axes(
    a: ThreadAccess, b: ThreadAccess, carrier: ThreadSpot | None, axes: Mapping[str, int], bounds: Bounds
) -> set[str]:
    """Returns those of *axes* along which the two may be different threads that access one element."""
    free = open_axes(a, b, carrier, axes)
    if a.indices is None or b.indices is None:
        return set(free)
    pair = _Pair(a, b, _common(a, b, carrier), bounds, carrier, next_only=False)
    return {axis for axis, n in free.items() if not pair.is_of_one_thread({axis: n})}


def in_rows_of_warps(a: ThreadAccess, b: ThreadAccess, axes: Mapping[str, int], warp: int, bounds: Bounds) -> bool:
    """Tells whether the first index of both is the number of the warp along the last axis, of whole warps."""
    last = THREADS[-1]
    if axes.get(last, 1) % warp:
        return False
    for x in (a, b):
        thread = position(x.spot, last)
        inside = within(bounds, x.spot.below(None), {})
        if not x.indices or thread is None or simplify(x.indices[0] - thread // index(warp), inside) is not ZERO:
            return False
    return True


def _common(a: ThreadAccess, b: ThreadAccess, carrier: ThreadSpot | None) -> ThreadSpot | None:
    return meet(a.spot, b.spot) if carrier is None else carrier.parent


class _Pair:
    """Two accesses, with the variables of the second one that are not common to both renamed."""

    def __init__(
        self,
        a: ThreadAccess,
        b: ThreadAccess,
        common: ThreadSpot | None,
        bounds: Bounds,
        carrier: ThreadSpot | None,
        *,
        next_only: bool,
    ) -> None:
        self.a, self.b = a, b
        self.first, self.second = a.spot.below(common), b.spot.below(carrier if next_only else common)
        self.names: dict[Var, Expr] = {}
        if carrier is not None:
            self.names = {v: Var(v.name, v.dtype) for p in self.second for v in bound_vars(p.stmt)}
            if next_only and isinstance(carrier.stmt, For):
                self.names[carrier.stmt.var] = carrier.stmt.var + ONE
        self.outer = within(bounds, common.below(None) if common is not None else [], {})
        self.bounds = within(within(self.outer, self.first, {}), self.second, self.names)
        self.left: Indices = a.indices or ()
        self.right: Indices = tuple([substitute(i, self.names) for i in b.indices or ()])
        self.own = {v for p in (*self.first, *self.second) for v in bound_vars(p.stmt)}
        self.own |= {v for v in self.names.values() if isinstance(v, Var)}

    def is_apart(self) -> bool:
        """Tells whether the two are different elements, whichever threads access them."""
        return any(self._differ(i, j) for i, j in zip(self.left, self.right, strict=True))

    def _differ(self, i: Expr, j: Expr) -> bool:
        if isinstance(i, FloorMod) and isinstance(j, FloorMod) and i.b is j.b and isinstance(i.b, Const):
            apart = simplify(i.a - j.a, self.bounds)
            return isinstance(apart, Const) and int(apart.value) % int(i.b.value) != 0
        return prove(i < j, self.bounds) or prove(j < i, self.bounds)

    def is_of_one_thread(self, axes: Mapping[str, int]) -> bool:
        """Tells whether the element's index determines the thread that accesses it."""
        return all(self._tells(axis, n) for axis, n in axes.items())

    def _tells(self, axis: str, count: int) -> bool:
        s, t = self._thread(self.a, axis), self._thread(self.b, axis)
        if s is None and sight_of(self.a.buffer.scope) is Sight.THREAD:
            return True
        if s is None or t is None:
            return False
        s, t = simplify(s, self.bounds), simplify(substitute(t, self.names), self.bounds)
        return (s is ZERO and t is ZERO) or any(
            self._tell(i, j, s, t, count) for i, j in zip(self.left, self.right, strict=True)
        )

    def _thread(self, x: ThreadAccess, axis: str) -> Expr | None:
        """Returns which thread along *axis* it is; None for all of them."""
        found = position(x.spot, axis)
        return found if found is not None else None if x.by_all else ZERO

    def _tell(self, i: Expr, j: Expr, s: Expr, t: Expr, count: int) -> bool:
        """Tells whether `i == j` implies `s == t`: each is the same digit of its index."""
        p, q = self._without_common(poly_of(simplify(i, self.bounds)), poly_of(simplify(j, self.bounds)))
        steps = {abs(p.get((v,), 0)) for v in free_vars(s)} | {abs(q.get((v,), 0)) for v in free_vars(t)}
        return any(self._digit(p, step, count, s) and self._digit(q, step, count, t) for step in steps if step)

    def _digit(self, p: Poly, step: int, count: int, value: Expr) -> bool:
        digit = poly_to_expr(p, value.dtype) // index(step) % index(count)
        return simplify(digit - value, self.bounds) is ZERO

    def _without_common(self, p: Poly, q: Poly) -> tuple[Poly, Poly]:
        """Drops the terms of both that are the same number for both."""
        same = {m for m, k in p.items() if m and q.get(m) == k and not self._is_own(m)}
        return {m: k for m, k in p.items() if m not in same}, {m: k for m, k in q.items() if m not in same}

    def _is_own(self, m: Monomial) -> bool:
        return any(v in self.own for atom in m for v in free_vars(atom))

    def is_same_place_of_one(self, axes: Mapping[str, int]) -> bool:
        """Tells whether both run the same loops over the same elements, each of which only one iteration accesses."""
        first, second = _loops(self.first), _loops(self.second)
        names = _in_terms_of(first, second)
        if names is None or not set(axes) <= {axis_of(f) for f in first}:
            return False
        right = [substitute(i, names) for i in self.b.indices or ()]
        if any(simplify(i - j, self.bounds) is not ZERO for i, j in zip(self.left, right, strict=True)):
            return False
        extents = {
            f.var: f.extent for f in first if any(f.var in free_vars(i) for i in self.left) or axis_of(f) in axes
        }
        found = detect_iter_map(self.left, extents, TRUE, self.a.buffer.shape, self.outer)
        return found is not None and found.injective


def _loops(chain: list[ThreadSpot]) -> list[For]:
    return [p.stmt for p in chain if isinstance(p.stmt, For)]


def _in_terms_of(first: list[For], second: list[For]) -> dict[Var, Expr] | None:
    """Returns the variables of *second* as those of *first*; None unless the loops run alike, from 0, over the same threads."""
    if len(first) != len(second) or any(f.begin is not ZERO for f in (*first, *second)):
        return None
    pairs = list(zip(first, second, strict=True))
    alike = all(f.extent is g.extent and axis_of(f) == axis_of(g) for f, g in pairs)
    return {g.var: f.var for f, g in pairs} if alike else None
