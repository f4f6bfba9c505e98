"""Random schedules for grids: blocks and threads, tiles in shared memory, reductions by the threads of a block.

Each block that is not computed inside another's loops gets a way of being run, drawn from `WAYS`; where a step of it is refused,
the block stays as it was. So most schedules are whole ones, of the kind that rules choose, with sizes that fit badly.
"""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Final

from tests.schedule.fuzz.choices import around, block_of, is_kept, is_plain, is_spatial

from weft.loop import Block, LoopKind, Program
from weft.schedule import BlockRef, LoopRef, Schedule, blocks_in
from weft.schedule.cursors.tree import block_path
from weft.schedule.legality.placement import read_buffers, readers, reduce_loops
from weft.schedule.trace import Trace, replay
from weft.support.errors import ScheduleError

THREADS: Final = (2, 3, 4, 5, 8, 16)
"""Threads along an axis; blocks have the product of two of them at most."""


def _loops(s: Schedule, block: BlockRef) -> tuple[list[LoopRef], list[LoopRef]]:
    """The plain loops around a block alone: over its results, and over what it reduces."""
    own = [f for f in around(s, block_of(s, block)) if is_plain(f) and len(blocks_in(f)) == 1]
    reduced = reduce_loops(block_path(s.function, block))
    return [LoopRef(f.var) for f in own if f not in reduced and is_spatial(f)], [
        LoopRef(f.var) for f in own if f in reduced
    ]


def elements(s: Schedule, r: random.Random, block: BlockRef) -> None:
    """A thread for each element, or for some of those that are fused."""
    spatial, _ = _loops(s, block)
    if not spatial:
        raise ScheduleError("there is one element")
    if len(spatial) > 1 and r.random() < 0.8:
        spatial = [s.fuse(spatial)]
    outer, inner = s.split(spatial[-1], [None, r.choice(THREADS)])
    s.bind(inner, r.choice(["threadIdx.x", "threadIdx.x", "threadIdx.y"]))
    s.bind(outer if r.random() < 0.7 or len(spatial) == 1 else spatial[0], "blockIdx.x")


def tiles(s: Schedule, r: random.Random, block: BlockRef) -> None:
    """A tile of threads for a tile of elements; what they reduce is fetched together into shared memory."""
    spatial, reduced = _loops(s, block)
    if len(spatial) < 2:
        raise ScheduleError("there are no tiles of one dimension")
    height, width = r.choice(THREADS), r.choice(THREADS)
    rows, y = s.split(spatial[-2], [None, height])
    columns, x = s.split(spatial[-1], [None, width])
    if reduced:
        chunks, within = s.split(reduced[0], [None, r.choice([2, 3, 4])])
        s.reorder([rows, columns, chunks, y, x, within])
        copies = _fetch(s, r, block, chunks)
        start = s.decompose_reduction(block, chunks)
        for each in (start, *copies):
            _bind_last(s, each, height, width, is_copy=each is not start)
    else:
        s.reorder([rows, columns, y, x])
    for loop, axis in ((rows, "blockIdx.y"), (columns, "blockIdx.x"), (y, "threadIdx.y"), (x, "threadIdx.x")):
        s.bind(loop, axis)


def _fetch(s: Schedule, r: random.Random, block: BlockRef, at: LoopRef) -> list[BlockRef]:
    """Copies of some of what a block reads, in shared memory."""
    made = []
    for buffer in read_buffers(block_of(s, block)):
        if r.random() < 0.7:
            copy = s.cache_read(block, buffer.name, "shared")
            s.compute_at(copy, at)
            made.append(copy)
            if r.random() < 0.3:
                s.storage_align(copy, 0, 8, 1)
    return made


def _bind_last(s: Schedule, block: BlockRef, height: int, width: int, *, is_copy: bool) -> None:
    """Gives the innermost loops of a block to the threads of its tile, a copy's as one loop."""
    own = _loops(s, block)[0]
    if len(own) < (1 if is_copy else 2):
        raise ScheduleError("there are too few loops for the threads")
    if is_copy:
        _, y, x = s.split(s.fuse(own) if len(own) > 1 else own[0], [None, height, width])
    else:
        y, x = own[-2:]
    s.bind(y, "threadIdx.y")
    s.bind(x, "threadIdx.x")


def shared_reductions(s: Schedule, r: random.Random, block: BlockRef) -> None:
    """A result, or several, for each block, whose threads share the reduction."""
    spatial, reduced = _loops(s, block)
    if not reduced:
        raise ScheduleError("nothing is reduced")
    _, lanes = s.split(r.choice(reduced), [None, r.choice(THREADS)])
    s.cross_thread_reduce(block, lanes)
    if spatial and r.random() < 0.5:
        outer, row = s.split(spatial[0], [None, r.choice([2, 3, 4])])
        s.bind(row, "threadIdx.y")
        s.bind(outer, "blockIdx.x")
    elif spatial:
        s.bind(spatial[0], "blockIdx.x")


def serial(s: Schedule, r: random.Random, block: BlockRef) -> None:
    """No threads: one does it all."""


Way = Callable[[Schedule, random.Random, BlockRef], None]
WAYS: Final[dict[Way, int]] = {elements: 4, tiles: 4, shared_reductions: 4, serial: 1}
"""With how often each is drawn."""


def _share(s: Schedule, r: random.Random, block: BlockRef) -> None:
    """Gives what is computed in a block of threads to them."""
    spatial, _ = _loops(s, block)
    if spatial:
        _, inner = s.split(s.fuse(spatial) if len(spatial) > 1 else spatial[0], [None, r.choice(THREADS)])
        s.bind(inner, "threadIdx.x")


def _inlined(s: Schedule, r: random.Random, block: BlockRef) -> None:
    """Computes a value where it is read."""
    s.compute_inline(block)


def _producer(s: Schedule, r: random.Random, block: BlockRef) -> None:
    """Computes what another block reads in its blocks of threads, which share it."""
    user = r.choice(readers(s.function, block_of(s, block)))
    bound = [f for f in around(s, user) if f.kind is LoopKind.BOUND]
    if not bound:
        raise ScheduleError("there are no blocks of threads")
    s.compute_at(block, LoopRef(bound[0].var))
    s.set_scope(block, r.choice(["shared", "shared", "local", "global"]))
    r.choice([_share, shared_reductions, serial])(s, r, block)


def grid_schedule(program: Program, r: random.Random) -> Schedule:
    """Returns a random schedule for a grid, made from the last block to the first."""
    s = Schedule(program)
    for name in reversed([b.name for b in blocks_in(s.function.body)]):
        block = BlockRef(name)
        if _is_placed(s, block_of(s, block)):
            continue
        if is_kept(s, block_of(s, block)) and r.random() < 0.6:
            s = _attempted(program, s, r, block, r.choice([_inlined, _producer, _producer]))
        if name in {b.name for b in blocks_in(s.function.body)} and not _is_placed(s, block_of(s, block)):
            s = _attempted(program, s, r, block, r.choices(list(WAYS), list(WAYS.values()))[0])
    return s


def _attempted(program: Program, s: Schedule, r: random.Random, block: BlockRef, way: Way) -> Schedule:
    """Returns *s* after some steps on a block, or as it was where one of them is refused."""
    kept = len(s.trace.steps)
    try:
        way(s, r, block)
    except ScheduleError:
        before = Schedule(program)
        replay(Trace(s.trace.steps[:kept]), before)
        return before
    return s


def _is_placed(s: Schedule, b: Block) -> bool:
    """Whether a block is in a grid already."""
    return any(f.kind is LoopKind.BOUND for f in around(s, b))
