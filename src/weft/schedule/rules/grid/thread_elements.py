"""One thread for each element of a result: neighbouring threads compute neighbours, so that a warp's accesses coalesce.

    for i in range(0, n):                    for b in bound(0, (n * 96 + 255) // 256, thread="blockIdx.x"):
        for j in range(0, 96):      ->           for t in bound(0, 256, thread="threadIdx.x"):
            Y[i, j] = f(X[i, j])                     i, j = (b * 256 + t) // 96, (b * 256 + t) % 96
                                                     if b * 256 + t < n * 96: Y[i, j] = f(X[i, j])

Where the threads of a block end inside of a loop, it may be beyond proof that each element has one thread: then blocks
have the threads of whole loops, or of whole parts of them, and fewer than asked for.

A block that no loop can be bound of, as the steps of a recurrence, stays as it is: lowering gives it a thread of its own.
"""

from __future__ import annotations

from weft.loop import AxisKind
from weft.schedule.cursors.state import BlockRef, LoopRef
from weft.schedule.cursors.tree import block_path, loops_on
from weft.schedule.legality.trust import proving
from weft.schedule.rules.block_facts import loops_of
from weft.schedule.schedule import Schedule
from weft.support.errors import ScheduleError


def bind_elements(s: Schedule, ref: BlockRef, threads: int) -> LoopRef | None:
    """Binds the loops over the results of *ref* to blocks of so many *threads*; returns the loop over threads.

    None where *ref* is in a grid already, or has no loops that may be bound.
    """
    loops = list(s.loops(ref))
    if any(f.kind != "range" for f in loops_on(block_path(s.function, ref))):
        return None
    spatial = loops_of(s, ref, loops, AxisKind.SPATIAL)
    if not spatial:
        return None
    for bind in (_bind, _bind_whole_loops):
        try:
            with proving():
                bind(Schedule(s.program), ref, loops, spatial, threads)
        except ScheduleError:  # some iterations need others, or share their loop with another block
            continue
        return bind(s, ref, loops, spatial, threads)
    _bind_outermost(s, loops)
    return None


def _bind(s: Schedule, ref: BlockRef, loops: list[LoopRef], spatial: list[LoopRef], threads: int) -> LoopRef:
    if loops[: len(spatial)] != spatial:
        s.reorder([*spatial, *[f for f in loops if f not in spatial]])
    whole = s.fuse(spatial) if len(spatial) > 1 else spatial[0]
    extent = s.extent(whole)
    block, thread = s.split(whole, [None, threads if extent is None else min(threads, extent)])
    s.bind(block, "blockIdx.x")
    s.bind(thread, "threadIdx.x")
    return thread


def _bind_whole_loops(
    s: Schedule, ref: BlockRef, loops: list[LoopRef], spatial: list[LoopRef], threads: int
) -> LoopRef:
    """Binds the last loops, whole or a part that divides the outermost of them, to so many threads at most."""
    if loops[: len(spatial)] != spatial:
        s.reorder([*spatial, *[f for f in loops if f not in spatial]])
    outer, inner, room = list(spatial), list[LoopRef](), threads
    while outer and (extent := s.extent(outer[-1])):  # neither unknown nor empty
        part = max(d for d in range(1, min(extent, room) + 1) if extent % d == 0)
        last = outer.pop()
        if part < extent:
            last, rest = reversed(s.split(last, [None, part]))
            outer.append(rest)
        inner.insert(0, last)
        room //= part
        if part < extent:
            break
    if not outer or not inner:
        raise ScheduleError(f"{ref.name} has no loops for both blocks and threads")
    block, thread = (s.fuse(own) if len(own) > 1 else own[0] for own in (outer, inner))
    s.bind(block, "blockIdx.x")
    s.bind(thread, "threadIdx.x")
    return thread


def _bind_outermost(s: Schedule, loops: list[LoopRef]) -> None:
    """Binds the outermost loop, if no more can be: one block of one thread for each of its iterations."""
    try:
        with proving():
            s.bind(loops[0], "blockIdx.x")
    except ScheduleError:  # each iteration needs the one before
        return
