"""Flow dependences within an iteration: a read fed by a write of the same iteration does not restrict the iterations' order.

A write *feeds* a read if, in every iteration of the loops around both, it has surely written all elements that the read
accesses. The elements written must fill a box: the loops below the common ones must reach every point of it (bijection
analysis), and the guard of the block may only cut the box where that is known exactly.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from math import gcd
from typing import NamedTuple

from weft.ir import (
    INDEX,
    ONE,
    TRUE,
    ZERO,
    Bounds,
    Const,
    Expr,
    Monomial,
    Poly,
    Var,
    conjuncts,
    detect_iter_map,
    extremes,
    free_vars,
    poly_of,
    poly_to_expr,
    prove,
    reads_memory,
    simplify,
    substitute,
)
from weft.loop import (
    Alloc,
    AxisKind,
    Block,
    Buffer,
    For,
    Function,
    Range,
    Region,
    Seq,
    Stmt,
    own_exprs,
    statements,
)
from weft.schedule.cursors.state import refuse
from weft.schedule.cursors.tree import Path, bounds_on, loops_on, outer_blocks, paths, the_block
from weft.schedule.legality.access_region import at_loops, ends_over
from weft.schedule.legality.coverage import covers_region, element_of
from weft.schedule.legality.iteration_domain import domain_of, loops_in
from weft.schedule.legality.predicate_bounds import fails_above, fails_below, limits


class Access(NamedTuple):
    """A region that the block at the end of *path*, from the function's root, reads or writes."""

    path: Path
    region: Region

    @property
    def block(self) -> Block:
        """The block."""
        return the_block(self.path)

    @property
    def loops(self) -> list[For]:
        """The loops around the block, outermost first."""
        return loops_on(self.path)


class Uses(NamedTuple):
    """All writes and reads of a buffer in a statement, in program order; a block's reads of its own result are kept apart."""

    writes: tuple[Access, ...]
    reads: tuple[Access, ...]
    own_reads: tuple[Access, ...]


def check_structured(root: Stmt) -> None:
    """Refuses statements outside blocks, and loops or blocks under data-dependent control flow: nothing is known about them."""
    for path in paths(root):
        s = path[-1]
        if not isinstance(s, For | Seq | Alloc | Block):
            refuse("a statement outside of any block may do anything", s, "put it into a block")
        if any(reads_memory(e) for e in own_exprs(s)):
            refuse(
                "a loop or block whose place is read from memory may go anywhere",
                s,
                "bind it to loops, and read the index inside the block",
            )


def check_flat(root: Stmt) -> None:
    """Refuses blocks with others inside."""
    for block in outer_blocks(root):
        if any(isinstance(x, Block) for x in statements(block.body)):
            refuse(f"{block.name} has other blocks inside", block, "take this step before blockize")


def uses_under(path: Path) -> dict[Buffer, Uses]:
    """Returns the uses of each buffer that blocks at or below the end of *path* access."""
    writes: dict[Buffer, list[Access]] = {}
    reads: dict[Buffer, list[Access]] = {}
    own: dict[Buffer, list[Access]] = {}
    for below in paths(path[-1]):
        block = below[-1]
        if not isinstance(block, Block):
            continue
        whole = (*path[:-1], *below)
        written = {r.buffer for r in block.writes}
        for r in block.writes:
            writes.setdefault(r.buffer, []).append(Access(whole, r))
        for r in block.reads:
            (own if r.buffer in written else reads).setdefault(r.buffer, []).append(Access(whole, r))
    return {
        b: Uses(tuple(writes.get(b, ())), tuple(reads.get(b, ())), tuple(own.get(b, ())))
        for b in dict.fromkeys([*writes, *reads])
    }


def is_before(a: Path, b: Path) -> bool:
    """Tells whether the end of *a* comes before that of *b* in program order; neither may be around the other."""
    n = common_length(a, b)
    parts = a[n - 1].children()
    return parts.index(a[n]) < parts.index(b[n])


def common_length(a: Path, b: Path) -> int:
    """Returns how many statements two paths have in common."""
    n = 0
    while n < min(len(a), len(b)) and a[n] is b[n]:
        n += 1
    return n


def is_finished(path: Path, within: Sequence[Stmt]) -> bool:
    """Tells whether the block at the end of *path* reduces over none of the loops *within*, so that an iteration completes it."""
    block = the_block(path)
    outer = {f.var for f in within if isinstance(f, For)}
    combined = [b for a, b in zip(block.axes, block.bindings, strict=True) if a.kind is not AxisKind.SPATIAL]
    return not any(v in outer for b in combined for v in free_vars(b))


def is_defined(access: Access) -> bool:
    """Tells whether a write surely stores to all of its region, independently of the previous contents."""
    return covers_region(access.block, access.region) and all(
        r.buffer is not access.region.buffer for r in access.block.reads
    )


def is_spread(fn: Function, write: Access) -> bool:
    """Tells whether a block's instances along spatial axes write different elements: it has the axes for its indices."""
    axes = {a.var: a.extent for a in write.block.axes if a.kind is AxisKind.SPATIAL and a.extent is not ONE}
    indices, elements = element_of(write.region)
    if axes.keys() <= set(indices):
        return True
    axes.update({f.var: f.extent for f in elements})
    found = detect_iter_map(indices, axes, TRUE, write.region.buffer.shape, bounds_on((), fn))
    return found is not None and found.injective


def covers_read(fn: Function, write: Access, read: Access) -> bool:
    """Tells whether *write*, which comes first, writes all that *read* accesses, in each iteration of the loops around both.

    Elements that the writing block updates count as written.
    """
    if not covers_region(write.block, write.region):
        return False
    common = write.path[: common_length(write.path, read.path)]
    around = set(common)
    if any(not isinstance(s, For | Seq | Alloc) for s in write.path[:-1] if s not in around):
        return False
    moving = [f for f in write.loops if f not in around]
    reading = [f for f in read.loops if f not in around]
    if any(f.begin is not ZERO and not (isinstance(f.begin, Const) and isinstance(f.extent, Const)) for f in moving):
        return False
    return _Feed(fn, common, write, moving, read, reading).holds()


class _Feed:
    """The question whether one write feeds one read."""

    def __init__(
        self, fn: Function, common: Path, write: Access, moving: list[For], read: Access, reading: list[For]
    ) -> None:
        self.where, elements = element_of(write.region)
        self.outer = bounds_on(common, fn)
        self.domain = domain_of(write.block, [*moving, *elements], bounds_on((*write.path, *elements), fn))
        self.inner: Bounds = self.domain.bounds
        self.reading_bounds = bounds_on(read.path, fn)
        self.write, self.read, self.reading = write, read, reading
        self.vars = list(self.domain.loops)
        self.sizes = self.inner.ranges.keys() - {f.var for f in (*write.loops, *elements)}

    def holds(self) -> bool:
        """Answers it: the box that is written is full, contains the elements read, and no guard reduces it."""
        written = [simplify(at_loops(self.write.block, i), self.inner) for i in self.where]
        sizes = self.write.region.buffer.shape
        wanted = [ends_over(self.read.block, r, self.reading, self.reading_bounds) for r in self.read.region.ranges]
        needs = [(ZERO, s - ONE) if w is None else w for w, s in zip(wanted, sizes, strict=True)]
        boxes = [extremes(e, self.vars, self.inner) for e in written]
        if any(b is None for b in boxes):
            return False
        known = [b for b in boxes if b is not None]
        return (
            all(self._holds(*b, *n, s) for b, n, s in zip(known, needs, sizes, strict=True))
            and self._is_full(written, known)
            and self._is_unguarded(written, needs)
        )

    def _holds(self, low: Expr, high: Expr, first: Expr, last: Expr, size: Expr) -> bool:
        """Tells whether the part of `first .. last` inside the buffer lies within `low .. high`."""
        return self._reaches_down(low, first) and self._reaches_up(high, last, size)

    def _reaches_down(self, low: Expr, first: Expr) -> bool:
        return low is first or prove(low <= first, self.outer) or prove(low <= ZERO, self.outer)

    def _reaches_up(self, high: Expr, last: Expr, size: Expr) -> bool:
        return high is last or prove(last <= high, self.outer) or prove(size - ONE <= high, self.outer)

    def _is_full(self, written: list[Expr], boxes: list[tuple[Expr, Expr]]) -> bool:
        """Tells whether the inner loops reach every point of the box while the outer ones are fixed."""
        rests: list[Expr] = []
        widths: list[Expr] = []
        for e, (low, high) in zip(written, boxes, strict=True):
            if low is high:
                continue
            rests.append(simplify(e - low, self.inner))
            widths.append(simplify(high - low + ONE, self.outer))
        loops = loops_in(rests, self.vars)
        if any(v not in loops and v not in self.sizes for r in rests for v in free_vars(r)):
            return False
        found = self.domain.detect(rests, loops, [], widths)
        return found is not None and found.surjective

    def _is_unguarded(self, written: list[Expr], needs: list[tuple[Expr, Expr]]) -> bool:
        """Tells whether the guard of the writing block holds at every element that is read."""
        shared = set(conjuncts(self.read.block.predicate))
        own = [c for c in self.domain.guard if c not in shared]
        if not own:
            return True
        sizes = self.write.region.buffer.shape
        exact = {
            limit.condition
            for e, (first, last), r, size in zip(written, needs, self.read.region.ranges, sizes, strict=True)
            for limit in limits(self.write.block, e, self.vars, self.inner)
            if limit.exact
            and (limit.first is None or any(self._reaches_down(limit.first, f) for f in [first, *self._ends_of(r)[0]]))
            and (limit.last is None or any(self._reaches_up(limit.last, n, size) for n in [last, *self._ends_of(r)[1]]))
        }
        return all(c in exact or self._holds_at_start(c, written) or self._reads_nothing_beyond(c, needs) for c in own)

    def _ends_of(self, r: Range) -> tuple[list[Expr], list[Expr]]:
        """Returns the least and the greatest index read, as limited by the guard of the reading block alone."""
        block, variables = self.read.block, [f.var for f in self.reading]
        first, last = at_loops(block, r.begin), at_loops(block, r.begin + r.extent - ONE)
        down = limits(block, simplify(first, self.reading_bounds), variables, self.reading_bounds)
        up = limits(block, simplify(last, self.reading_bounds), variables, self.reading_bounds)
        return [n.first for n in down if n.first is not None], [n.last for n in up if n.last is not None]

    def _reads_nothing_beyond(self, c: Expr, needs: list[tuple[Expr, Expr]]) -> bool:
        """Tells whether the read accesses only elements outside the buffer in the iterations in which the condition *c* fails.

        No write could feed such reads: they are padding that a `select` skips.
        """
        if any(v in self.vars for v in free_vars(c)):
            return False
        around = [v for v in free_vars(c) if v not in self.sizes]
        sizes = self.write.region.buffer.shape
        return any(
            fails_above(c, first, size, around, self.outer) or fails_below(c, last, ZERO, around, self.outer)
            for (first, last), size in zip(needs, sizes, strict=True)
        )

    def _holds_at_start(self, c: Expr, written: list[Expr]) -> bool:
        """Tells whether a condition on loops that only repeat or reduce holds in their first iteration."""
        used = {v for e in written for v in free_vars(e)}
        if any(v in used or v not in self.vars for v in free_vars(c) if v not in self.sizes):
            return False
        return prove(substitute(c, {v: self.domain.begin(v) for v in self.vars}), self.outer)


def uncovered_read(fn: Function, uses: Uses, around: Collection[Var] | None = None) -> Access | None:
    """Returns a read (or a second write) of elements that no earlier write of the same iteration has finished; None if all are.

    An iteration is one of the loops that a read shares with the writes. With *around*, the variables of the loops outside of
    those iterations, accesses that never touch the same elements while these are fixed do not count.
    """
    for n, later in enumerate(uses.writes[1:], 1):
        if not (
            any(covers_read(fn, w, later) for w in _others(uses.writes[:n], later))
            or _are_disjoint(fn, uses.writes[:n], later, around)
        ):
            return later
    return next((r for r in uses.reads if not _is_harmless(fn, uses.writes, r, around)), None)


def _is_harmless(fn: Function, writes: Sequence[Access], read: Access, around: Collection[Var] | None) -> bool:
    return all(is_covered(fn, [w], read) or (around is not None and is_disjoint(fn, w, read, around)) for w in writes)


def _are_disjoint(fn: Function, earlier: Sequence[Access], later: Access, around: Collection[Var] | None) -> bool:
    return around is not None and all(is_disjoint(fn, w, later, around) for w in _others(earlier, later))


def _others(writes: Sequence[Access], access: Access) -> list[Access]:
    return [w for w in writes if w.path != access.path]


def roots(fn: Function, uses: Uses) -> list[Access]:
    """Returns the writes, in program order, whose elements no earlier write of the same iteration has written."""
    found: list[Access] = []
    for w in uses.writes:
        if not any(covers_read(fn, r, w) for r in _others(found, w)):
            found.append(w)
    return found


def is_disjoint(fn: Function, a: Access, b: Access, around: Collection[Var]) -> bool:
    """Tells whether two accesses touch different elements while the loops of the variables *around* are fixed."""
    for x, y in zip(a.region.ranges, b.region.ranges, strict=True):
        first, second = (
            ends_over(s.block, r, [f for f in s.loops if f.var not in around], bounds_on(s.path, fn))
            for s, r in ((a, x), (b, y))
        )
        bounds = bounds_on(a.path, fn)
        separate = (
            first is not None
            and second is not None
            and (prove(first[1] < second[0], bounds) or prove(second[1] < first[0], bounds))
        )
        if separate or (x.extent is ONE and y.extent is ONE and _take_turns(fn, a, x.begin, b, y.begin, around)):
            return True
    return False


def _take_turns(fn: Function, a: Access, i: Expr, b: Access, j: Expr, around: Collection[Var]) -> bool:
    """Tells whether the index *i* of one access and *j* of another never meet: modulo some step, they take different values.

    Terms that are multiples of the step vanish; the others stay within bounds. Without such other terms, this is the GCD test
    (Banerjee, "Dependence analysis for supercomputing", 1988).
    """
    p, q = (poly_of(simplify(at_loops(s.block, e), bounds_on(s.path, fn))) for s, e in ((a, i), (b, j)))
    moving = {f.var for s in (a, b) for f in s.loops if f.var not in around}
    steps = {abs(k) for x in (p, q) for m, k in x.items() if m}
    steps.add(gcd(*[k for x in (p, q) for m, k in x.items() if not moving.isdisjoint(_variables(m))]))
    return any(n > 1 and _differ_modulo(n, _rest(fn, a, p, n, moving), _rest(fn, b, q, n, moving)) for n in steps)


def _variables(m: Monomial) -> set[Var]:
    return {v for e in m for v in free_vars(e)}


_Rest = tuple[Poly, int, int]
"""The terms of an index that are fixed, and the least and the largest sum of all others."""


def _rest(fn: Function, access: Access, p: Poly, step: int, moving: Collection[Var]) -> _Rest | None:
    """Returns the remainder of an index modulo *step*, where its block runs; None if it is not bounded."""
    left = {m: k for m, k in p.items() if not m or k % step}
    still = {m: k for m, k in left.items() if m and _variables(m).isdisjoint(moving)}
    bounds = domain_of(access.block, access.loops, bounds_on(access.path, fn)).bounds
    low, high = bounds.of(poly_to_expr({m: k for m, k in left.items() if m not in still}, INDEX))
    return None if low is None or high is None else (still, low, high)


def _differ_modulo(step: int, a: _Rest | None, b: _Rest | None) -> bool:
    """Tells whether no number in one range equals one in the other plus a multiple of *step*."""
    if a is None or b is None or a[0] != b[0]:
        return False
    least, most = a[1] - b[2], a[2] - b[1]
    return most // step * step < least


def is_covered(fn: Function, writes: Sequence[Access], read: Access) -> bool:
    """Tells whether all of *writes* come before *read*, are finished in its iteration, and write all that it accesses."""
    return all(
        is_before(w.path, read.path)
        and is_finished(w.path, w.path[: common_length(w.path, read.path)])
        and covers_read(fn, w, read)
        for w in writes
    )
