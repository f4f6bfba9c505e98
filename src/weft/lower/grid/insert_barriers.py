"""Inserts barriers where a thread depends on memory accesses of another thread of its block, and as few as possible.

    for k in range(0, 8):                                      for k in range(0, 8):
        for t in bound(0, 16, thread="threadIdx.x"):               for t in bound(0, 16, thread="threadIdx.x"):
            S[t] = A[k, t]                                             S[t] = A[k, t]
        for t in bound(0, 16, thread="threadIdx.x"):     ->        call("weft.barrier")
            C[t] = C[t] + S[15 - t]                                for t in bound(0, 16, thread="threadIdx.x"):
                                                                       C[t] = C[t] + S[15 - t]
                                                                   call("weft.barrier")

A dependence is a pair of accesses to one element by different threads, one of which writes, in one iteration of the loops
around both or, carried by a serial loop, in two. Each needs a barrier on every path between them. Inner loops come first, since
they run most often; in a loop's body the dependences are arcs on a circle, those from one iteration to the next pass its end, and
the fewest points that hit all arcs are found exactly. As barriers stand between loops over threads, all threads reach them.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from itertools import product

from weft.ir import ONE, ZERO, Bounds, prove
from weft.loop import (
    ASYNC_WAIT,
    BARRIER,
    WARP_BARRIER,
    Address,
    Alloc,
    Buffer,
    Call,
    For,
    If,
    Let,
    LoopKind,
    Program,
    Seq,
    Stmt,
    Store,
    View,
    While,
    meet,
    seq,
)
from weft.lower.analysis.barrier_intervals import ThreadAccess, ThreadSpot, accesses, thread_extents, tree, within
from weft.lower.analysis.grid_shape import THREADS, is_over_blocks
from weft.lower.analysis.thread_conflicts import conflicts, in_rows_of_warps, unknown_axes
from weft.lower.stmt_rewriter import Steps, StmtRewriter, Visited, map_functions, size_bounds
from weft.support.errors import LoweringError
from weft.targets import Sight, Target, sight_of


def insert_barriers(program: Program, target: Target) -> Program:
    """Returns *program* with barriers in its grids; refuses one whose threads, or warps, access each other's private memory."""
    warp = target.grid.warp if target.grid else 1
    waits = any(scope.sight is Sight.WARP for scope in target.scopes)
    return map_functions(program, lambda f: _Insert(size_bounds(f), warp, waits=waits).rewrite(f.body))


class _Insert(StmtRewriter):
    """Looks at each grid as a whole."""

    def __init__(self, bounds: Bounds, warp: int, *, waits: bool) -> None:
        self.bounds = bounds
        self.warp = warp
        self.waits = waits

    def visit(self, s: Stmt) -> Visited:
        if not is_over_blocks(s):
            return super().visit(s)
        return _Put(_Plan(s, self.bounds, self.warp, waits=self.waits).made()).rewrite(s)


@dataclass(frozen=True, eq=False)
class Dependence:
    """*sink* must come after *source* in another thread; through the next iterations of *carrier*, if it is given.

    If it is *far*, not in the very next iteration: any barrier in the loop satisfies it.
    """

    source: ThreadAccess
    sink: ThreadAccess
    carrier: ThreadSpot | None
    far: bool


@dataclass
class Barriers:
    """The calls before and after statements, by the number of their spots."""

    before: dict[int, Call] = field(default_factory=dict)
    after: dict[int, Call] = field(default_factory=dict)


class _Plan:
    """Finds the dependences of a grid, and where barriers are to stand."""

    def __init__(self, root: Stmt, bounds: Bounds, warp: int, *, waits: bool) -> None:
        self.bounds = bounds
        self.warp = warp
        self.waits = waits
        self.spots = tree(root)
        self.axes = thread_extents(root)
        self.of_warp = _axes_of_warp(self.axes, warp)
        self.barriers = Barriers()

    def made(self) -> Barriers:
        """Returns the barriers that the grid needs."""
        if all(n == 1 for n in self.axes.values()):
            return self.barriers
        by_sight: dict[Sight, list[Dependence]] = {}
        for d in self.dependences():
            by_sight.setdefault(sight_of(d.source.buffer.scope), []).append(d)
        if private := by_sight.get(Sight.THREAD):
            _refuse(private[0])
        self.check_warps(by_sight.get(Sight.WARP, []))
        of_block = by_sight.get(Sight.BLOCK, [])
        near = [d for d in of_block if self.waits and self.is_in_warp(d)]
        self.place([*by_sight.get(Sight.GRID, []), *[d for d in of_block if d not in near]], Call(BARRIER, ()))
        self.place(near, Call(WARP_BARRIER, ()))
        for b, found in _by_buffer(by_sight.get(Sight.WARP, [])).items():
            self.place(found, Call(WARP_BARRIER, (Address(b, (ZERO,) * b.rank),)))
        return self.barriers

    def dependences(self) -> list[Dependence]:
        """Returns all pairs of accesses that barriers must keep in order."""
        groups: dict[object, list[ThreadAccess]] = {}
        for x in accesses(self.spots):
            groups.setdefault(x.buffer, []).append(x)
        return [d for found in groups.values() if any(x.writes for x in found) for d in self.among(found)]

    def among(self, found: list[ThreadAccess]) -> list[Dependence]:
        """Returns the dependences through one buffer."""
        made: list[Dependence] = []
        for a, b in product(found, found):
            if a.writes and _is_wait(b):
                continue  # each thread fills the buffer by copies of its own, and waits for these
            around = meet(a.spot, b.spot)
            in_turn = a.spot.number < b.spot.number and not _excludes(around, a.spot, b.spot)
            carriers = [p for p in around.outwards() if _is_serial(p.stmt) and not _is_own(a, p)]
            for carrier in [None, *carriers] if in_turn else carriers:
                if conflicts(a, b, carrier, self.axes, self.bounds):
                    steps = carrier is not None and isinstance(carrier.stmt, For)
                    far = steps and not conflicts(a, b, carrier, self.axes, self.bounds, next_only=True)
                    made.append(Dependence(a, b, carrier, far))
        return made

    def is_in_warp(self, d: Dependence) -> bool:
        """Tells whether only threads of one warp access an element."""
        unknown = unknown_axes(d.source, d.sink, d.carrier, self.axes, self.bounds)
        return self.of_warp is not None and unknown <= self.of_warp

    def check_warps(self, found: list[Dependence]) -> None:
        """Refuses memory of warps in blocks whose last axes are no warps, and dependences through it between warps."""
        used = [s.stmt.buffer for s in self.spots if isinstance(s.stmt, Store) and _is_of_warp(s.stmt.buffer)]
        if used and self.of_warp is None and self.axes[THREADS[-1]] % self.warp:
            shape = " x ".join([str(n) for n in self.axes.values()])
            raise LoweringError(
                f"{used[0].name} is in warp memory, but a row of a block of {shape} threads is not a warp",
                hint=f"bind a loop of {self.warp} iterations to {THREADS[-1]}, or use shared memory",
            )
        for d in found:
            if not self.is_in_warp(d) and not in_rows_of_warps(d.source, d.sink, self.axes, self.warp, self.bounds):
                raise LoweringError(
                    f"{d.source.buffer.name} is in warp memory, but threads of several warps use it",
                    hint='put it into "shared" memory',
                )

    def place(self, wanted: list[Dependence], barrier: Call) -> None:
        """Puts barriers for the dependences *wanted*, the innermost first."""
        levels: dict[ThreadSpot, list[Dependence]] = {}
        for d in wanted:
            levels.setdefault(_level(d), []).append(d)
        for level in sorted(levels, key=lambda s: (-s.depth, s.number)):
            missing = [d for d in levels[level] if not self.is_kept(d, level)]
            for gap in fewest([_arc(d, level) for d in missing], _size(level) + 1):
                self.put(level, gap, barrier)

    def put(self, level: ThreadSpot, gap: int, barrier: Call) -> None:
        """Puts a barrier before part number *gap* of a level, or behind its last part, where there is none."""
        parts = _parts(level)
        if gap < len(parts):
            self.barriers.before.setdefault(parts[gap].number, barrier)
        else:
            self.barriers.after.setdefault(parts[-1].number, barrier)

    def is_kept(self, d: Dependence, level: ThreadSpot) -> bool:
        """Tells whether there is a barrier on every path from the source of *d* to its sink."""
        first, last = _part_of(d.source.spot, level), _part_of(d.sink.spot, level)
        if self.is_after(d.source.spot, first) or self.is_before(d.sink.spot, last):
            return True
        if first is None or last is None:
            return False
        if first.number in self.barriers.after or last.number in self.barriers.before:
            return True
        parts, i, j = _parts(level), first.number, last.number
        if d.far:
            between = parts
        elif d.carrier is None:
            between = [p for p in parts if i < p.number < j]
        else:
            between = [p for p in parts if p.number > i or p.number < j]
        return any(self.is_certain(p) for p in between)

    def is_after(self, spot: ThreadSpot, top: ThreadSpot | None) -> bool:
        """Tells whether a barrier surely follows *spot* before the statements around it, up to *top*, end."""
        while spot is not top and spot.parent is not None:
            if spot.number in self.barriers.after:
                return True
            later = spot.parent.children[spot.child + 1 :] if isinstance(spot.parent.stmt, Seq) else []
            if any(self.is_certain(p) for p in later):
                return True
            spot = spot.parent
        return False

    def is_before(self, spot: ThreadSpot, top: ThreadSpot | None) -> bool:
        """Tells whether a barrier surely comes before *spot* once *top* is entered."""
        while spot is not top and spot.parent is not None:
            if spot.number in self.barriers.before:
                return True
            earlier = spot.parent.children[: spot.child] if isinstance(spot.parent.stmt, Seq) else []
            if any(self.is_certain(p) for p in earlier):
                return True
            spot = spot.parent
        return False

    def is_certain(self, spot: ThreadSpot) -> bool:
        """Tells whether all threads pass a barrier whenever they run *spot*."""
        if spot.number in self.barriers.before or spot.number in self.barriers.after:
            return True
        s, inside = spot.stmt, [self.is_certain(p) for p in spot.children]
        if isinstance(s, If):
            return s.other is not None and all(inside)
        if isinstance(s, While):
            return False
        if isinstance(s, For) and not prove(s.extent > ZERO, within(self.bounds, spot.below(None)[:-1], {})):
            return False
        return any(inside)


def _refuse(d: Dependence) -> None:
    b = d.source.buffer
    raise LoweringError(
        f"{b.name} is in {b.scope} memory, which each thread has for itself, but one thread uses what another wrote there",
        hint='put it into "shared" memory, or bind the loops of all that use it to the same threads',
    )


def _is_wait(x: ThreadAccess) -> bool:
    return isinstance(x.spot.stmt, Call) and x.spot.stmt.callee == ASYNC_WAIT


def _by_buffer(found: list[Dependence]) -> dict[Buffer, list[Dependence]]:
    made: dict[Buffer, list[Dependence]] = {}
    for d in found:
        made.setdefault(d.source.buffer, []).append(d)
    return made


def _axes_of_warp(axes: dict[str, int], warp: int) -> set[str] | None:
    """Returns the last axes, along which threads are a warp, or all of a part of one; None where rows of threads are neither."""
    count = 1
    found: set[str] = set()
    for axis in reversed(axes):
        if axes[axis] > 1 and count == warp:
            return found
        count, found = count * axes[axis], {*found, axis}
    return found if count <= warp else None


def _is_of_warp(b: Buffer) -> bool:
    return sight_of(b.scope) is Sight.WARP


def _is_serial(s: Stmt) -> bool:
    return isinstance(s, While) or (isinstance(s, For) and s.kind is not LoopKind.BOUND and s.extent is not ONE)


def _is_own(a: ThreadAccess, loop: ThreadSpot) -> bool:
    """Tells whether the buffer that *a* accesses is private to each iteration of *loop*."""
    return any(isinstance(p.stmt, Alloc) and p.stmt.buffer is a.buffer for p in a.spot.below(loop))


def _excludes(around: ThreadSpot, a: ThreadSpot, b: ThreadSpot) -> bool:
    """Tells whether *a* and *b* are in the two branches of a condition."""
    if not isinstance(around.stmt, If) or a is around or b is around:
        return False
    return a.below(around)[0] is not b.below(around)[0]


def _level(d: Dependence) -> ThreadSpot:
    """Returns the spot among whose parts a barrier for *d* belongs: a sequence, or the body of the loop that carries *d*."""
    if d.carrier is not None:
        spot = d.carrier.children[0]
        while isinstance(spot.stmt, Let | Alloc | View):
            spot = spot.children[0]
        return spot
    spot = meet(d.source.spot, d.sink.spot)
    while not isinstance(spot.stmt, Seq) and spot.children and spot is not d.sink.spot:
        spot = next(p for p in spot.children if p in set(d.sink.spot.outwards()))
    return spot


def _parts(level: ThreadSpot) -> list[ThreadSpot]:
    return level.children if isinstance(level.stmt, Seq) and level.children else [level]


def _size(level: ThreadSpot) -> int:
    return len(_parts(level))


def _part_of(spot: ThreadSpot, level: ThreadSpot) -> ThreadSpot | None:
    """Returns the part of *level* that holds *spot*; None for a spot outside of the level."""
    above = set(spot.outwards())
    return next((p for p in _parts(level) if p in above), None)


def _arc(d: Dependence, level: ThreadSpot) -> list[int]:
    """Returns the gaps between source and sink in order: gap g is before part g, the last one behind all parts."""
    parts = _parts(level)
    first, last = _part_of(d.source.spot, level), _part_of(d.sink.spot, level)
    i = -1 if first is None else parts.index(first)
    j = 0 if last is None else parts.index(last)  # bindings around the parts are computed before the first one
    if d.carrier is None:
        return list(range(i + 1, j + 1))
    # Behind the last part is as good as before the first one.
    return [*range(i + 1, len(parts) + 1), *range(1, (i if d.far else j) + 1)]


def fewest(arcs: list[list[int]], size: int) -> list[int]:
    """Returns a smallest set of points of a circle of *size* that hits all *arcs*, each a run of points in order.

    One point of the first arc must be chosen; where it is, the circle is cut open, and the rest is intervals on a line,
    of which each in turn that is not hit yet is hit at its end.
    """
    arcs = [a for a in arcs if a]
    if not arcs:
        return []
    choices = [[start, *_on_a_line([a for a in arcs if start not in a], start, size)] for start in reversed(arcs[0])]
    return min(choices, key=lambda c: (len(c), c.count(0)))


def _on_a_line(arcs: list[list[int]], start: int, size: int) -> list[int]:
    chosen: list[int] = []
    for a in sorted(arcs, key=lambda a: (a[-1] - start) % size):
        if not chosen or chosen[-1] not in a:
            chosen.append(a[-1])
    return chosen


class _Put(StmtRewriter):
    """Writes the barriers of a plan; statements are counted in pre-order."""

    def __init__(self, barriers: Barriers) -> None:
        self.barriers = barriers
        self.count = 0

    def visit(self, s: Stmt) -> Visited:
        number = self.count
        self.count += 1
        before, after = self.barriers.before.get(number), self.barriers.after.get(number)
        return super().visit(s) if before is None and after is None else self._with(s, before, after)

    def _with(self, s: Stmt, before: Call | None, after: Call | None) -> Steps:
        made = super().visit(s)
        result = made if isinstance(made, Stmt) else (yield from made)
        first = [] if before is None else [before]
        last = [] if after is None else [after]
        return seq(*first, result, *last)
