"""One thread for each element of a result: neighbouring threads compute neighbours, so that a warp's accesses coalesce.

    for i in range(0, n):                    for b in bound(0, (n * 96 + 255) // 256, thread="blockIdx.x"):
        for j in range(0, 96):      ->           for t in bound(0, 256, thread="threadIdx.x"):
            Y[i, j] = f(X[i, j])                     i, j = (b * 256 + t) // 96, (b * 256 + t) % 96
                                                     if b * 256 + t < n * 96: Y[i, j] = f(X[i, j])

Where the threads of a block end inside of a loop, it may be beyond proof that each element has one thread: then blocks
have the threads of whole loops, or of whole parts of them, and fewer than asked for.

A thread makes an update that may be made in any order, by an atomic operation.

Where rows of words, or of halves of words, are read and written in order, and are whole vectors, a thread computes several
elements side by side:

    for v in vectorized(0, 4): i, j = ((b * 256 + t) * 4 + v) // 96, ((b * 256 + t) * 4 + v) % 96; Y[i, j] = f(X[i, j])

A block that no loop can be bound of, as the steps of a recurrence, stays as it is: lowering gives it a thread of its own.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import TypeAlias

from weft.cost import WORD
from weft.ir import TRUE, And, Or, Select, post_order, reads_memory
from weft.loop import AxisKind, Block, Load, Store, loads
from weft.schedule.cursors.state import BlockRef, LoopRef
from weft.schedule.cursors.tree import block_path, loops_on
from weft.schedule.legality.trust import proving
from weft.schedule.rules.block_facts import block_of, ignores_or_follows, is_reduction, loops_of, reads_along
from weft.schedule.schedule import Schedule
from weft.support.errors import ScheduleError

_Bind: TypeAlias = Callable[[Schedule, BlockRef, list[LoopRef], list[LoopRef], int], LoopRef]
"""Binds the loops of a block, some of them over its results, to thread blocks of the given size; returns the loop over
threads."""


def bind_elements(
    s: Schedule, ref: BlockRef, threads: int, lanes: int = 1, own: Sequence[LoopRef] = ()
) -> LoopRef | None:
    """Binds the loops over the results of *ref* to blocks of so many *threads*; returns the loop over threads.

    A thread computes *lanes* elements where they lie side by side, or twice as many where some are of half a word. Each thread
    goes through the loops *own* by itself; they are the innermost.

    None where *ref* is in a grid already, or has no loops that may be bound.
    """
    loops = list(s.loops(ref))
    if any(f.kind != "range" for f in loops_on(block_path(s.function, ref))):
        return None
    apart = {f for kind in (AxisKind.SPATIAL, AxisKind.UNORDERED) for f in loops_of(s, ref, loops, kind)}
    spatial = [f for f in loops if f in apart and f not in own]
    if not spatial:
        return None
    wide = lanes * WORD // _narrowest(block_of(s, ref)) if lanes > 1 else 1
    in_vectors = wide > 1 and _has_vectors(s, ref, loops, wide)
    binds: list[_Bind] = [partial(_bind_vectors, lanes=wide)] if in_vectors else []
    for bind in (*binds, _bind, _bind_whole_loops):
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


def _bind_vectors(
    s: Schedule, ref: BlockRef, loops: list[LoopRef], spatial: list[LoopRef], threads: int, *, lanes: int
) -> LoopRef:
    """Binds the loops to threads that compute vectors."""
    whole = s.fuse(spatial) if len(spatial) > 1 else spatial[0]
    block, thread, lane = s.split(whole, [None, min(threads, (s.extent(whole) or 0) // lanes), lanes])
    s.bind(block, "blockIdx.x")
    s.bind(thread, "threadIdx.x")
    s.vectorize(lane)
    return thread


def _has_vectors(s: Schedule, ref: BlockRef, loops: list[LoopRef], lanes: int) -> bool:
    """Tells whether a block accesses words contiguously along its innermost loop, unconditionally, and in whole vectors."""
    block = block_of(s, ref)
    axes = [a for a, b in zip(block.axes, block.bindings, strict=True) if b is loops[-1].var]
    extents = [s.extent(f) for f in loops]
    if _combines(block) or not axes or None in extents or (extents[-1] or 0) % lanes:
        return False
    var = axes[0].var
    if not isinstance(block.body, Store) or not reads_along(block.body, var) or block.predicate is not TRUE:
        return False
    touched: list[Load | Store] = [block.body, *loads(block.body)]
    conditions = [n for n in post_order(block.body.value) if isinstance(n, And | Or | Select)]
    return not any(map(reads_memory, conditions)) and all(
        n.buffer.dtype.bits in (WORD, WORD // 2) and ignores_or_follows(n, var) for n in touched
    )


def _combines(block: Block) -> bool:
    """Tells whether several instances of a block combine values into one element."""
    return is_reduction(block) or any(a.kind is AxisKind.UNORDERED for a in block.axes)


def _narrowest(block: Block) -> int:
    """Returns the bits of the shortest elements that a block accesses, of those that vectors have."""
    touched: list[Load | Store] = [*loads(block.body), *([block.body] if isinstance(block.body, Store) else [])]
    return min([max(WORD // 2, min(WORD, x.buffer.dtype.bits)) for x in touched], default=WORD)


def _bind_whole_loops(
    s: Schedule, ref: BlockRef, loops: list[LoopRef], spatial: list[LoopRef], threads: int
) -> LoopRef:
    """Binds the innermost loops, of the outermost possibly only a factor, to at most that many threads."""
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
