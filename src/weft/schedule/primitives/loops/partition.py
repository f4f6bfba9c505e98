"""`partition`: a loop becomes several, one after another; guards that are constant in one of them are removed there.

for i in range(0, 10):                  for i in range(0, 8):
    if i < 8: S(i)             ->           S(i)
    T(i)                                    T(i)
                                        for i in range(0, 2):
                                            T(8 + i)
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

from weft.ir import ONE, ZERO, Bounds, Expr, Var, index, prove, simplify
from weft.loop import NOTHING, For, Function, LoopKind, Stmt, for_, seq
from weft.schedule.cursors.primitive import primitive
from weft.schedule.cursors.rebind import rebind
from weft.schedule.cursors.state import Change, LoopRef, refuse
from weft.schedule.cursors.tree import alloc_of, blocks_in, bounds_on, loop_path, replace, the_loop
from weft.schedule.legality.flow_dependence import uses_under
from weft.schedule.legality.loop_kinds import is_private, with_own_buffers
from weft.schedule.rewriting.loop_copies import loop_copy, relegalized_copy


@primitive
def partition(fn: Function, loop: LoopRef, points: Sequence[int]) -> tuple[Change, tuple[LoopRef, ...]]:
    """Cuts *loop* before the iterations numbered *points* into loops that run one after another; returns them.

    A negative point counts from the end. Blocks are copied under new names, C_1 and so on; one whose guard never holds in a
    part is left out there. Legal for any serial loop. A reference to the old loop leads to the first part.
    """
    given = the_loop(loop_path(fn, loop))
    if given.kind is not LoopKind.SERIAL:
        refuse(f"the loop is {given.kind} already", given, "partition before choosing how a loop runs")
    fn = _with_own_registers(fn, loop)
    path = loop_path(fn, loop)
    old = the_loop(path)
    bounds = bounds_on(path[:-1], fn)
    ends = [ZERO, *_points(old, points, bounds), old.extent]
    made = [Var(old.var.name) for _ in ends[1:]]
    taken = {b.name for b in blocks_in(fn.body)}
    parts: list[Stmt] = []
    for n, (var, (first, after)) in enumerate(zip(made, pairwise(ends), strict=True)):
        extent = simplify(after - first, bounds)
        inside = bounds.bind(var, ZERO, extent - ONE)
        body = old.body if n == 0 else loop_copy(old.body, taken)
        part = rebind(body, {old.var: simplify(old.begin + first + var, inside)}, inside)
        parts.append(for_(var, extent, relegalized_copy(part, inside)))
    new = seq(*[p if isinstance(p, For) and p.body is not NOTHING else NOTHING for p in parts])
    return Change(fn.with_body(replace(path, new)), ((old.var, made[0]),)), tuple([LoopRef(v) for v in made])


def _with_own_registers(fn: Function, loop: LoopRef) -> Function:
    """Moves register tiles that are not live across iterations of *loop* into it, so that each part has its own.

    For buffers in memory a lowering pass does this; registers must be few before that.
    """
    path = loop_path(fn, loop)
    used = [(b, uses) for b, uses in uses_under(path).items() if b.in_registers and uses.writes]
    outside = [(b, uses) for b, uses in used if alloc_of(path[-1], b) is None]
    return with_own_buffers(fn, loop, [b for b, uses in outside if is_private(fn, path, uses, b)])


def _points(old: For, points: Sequence[int], bounds: Bounds) -> list[Expr]:
    """Returns the numbers of the iterations to cut before; refuses any that are not inside the loop, in order."""
    if not points:
        refuse("no points to cut at were given", old, "name the number of at least one iteration")
    found = [simplify(old.extent + index(p), bounds) if p < 0 else index(p) for p in points]
    for a, b in pairwise([ZERO, *found, old.extent]):
        if not prove(a < b, bounds):
            refuse(
                f"the points {list(points)} are not known to be inside the loop, each after the one before",
                old,
                "a point is the number of an iteration, or negative to count from the end",
            )
    return found
