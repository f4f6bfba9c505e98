"""Vectorising the innermost of some loops, or a spatial one inside of a reduction."""

from __future__ import annotations

from collections.abc import Sequence

from weft.cost import FALLBACK_SIZE, MOST_LOOP_VECTORS, Jam, Planner, jam_plans, may_jam, operations_of
from weft.ir import Bounds, Const, free_vars, index, prove
from weft.loop import Block, stores
from weft.schedule.cursors.state import BlockRef, LoopRef
from weft.schedule.legality.trust import proving
from weft.schedule.rules.block_facts import block_of, reduce_axes
from weft.schedule.schedule import Schedule
from weft.support.errors import ScheduleError


def vectorize_last(s: Schedule, loops: Sequence[LoopRef], lanes: int, shortest: int | None = None) -> list[LoopRef]:
    """Vectorises the last of *loops*, in pieces of *lanes* where it is longer; returns the loops that stay serial.

    A loop that is not longer than half a vector, or is shorter than *shortest*, stays as it is.
    """
    *outer, last = loops
    extent = s.extent(last)
    if extent is not None and extent < (lanes // 2 + 1 if shortest is None else shortest):
        return list(loops)
    if extent is not None and (extent <= lanes or (extent % lanes == 0 and extent <= MOST_LOOP_VECTORS * lanes)):
        return outer if _vectorize(s, last) else list(loops)
    rest, piece = s.split(last, [None, lanes * (most_vectors(s, last, lanes) or 1)])
    _vectorize(s, piece)
    return [*outer, rest]


def vectorize_map(
    s: Schedule, ref: BlockRef, loops: Sequence[LoopRef], lanes: int, p: Planner, shortest: int
) -> list[LoopRef]:
    """Vectorises the last of the *loops* around a map, several vectors at once where its formula is long.

    Returns the loops that stay serial. A loop whose size is not known, or is no whole number of vectors, takes one at a time.
    """
    extent, operations = s.extent(loops[-1]), map_operations(block_of(s, ref))
    vectors = 0 if extent is None or extent % lanes else extent // lanes
    if vectors > MOST_LOOP_VECTORS and may_jam(vectors, operations):
        lanes *= p.decide(ref.name, Jam, lambda _: jam_plans(vectors, operations)).vectors
        rest, piece = s.split(loops[-1], [None, lanes])
        return [*loops[:-1], rest] if _vectorize(s, piece) else [*loops[:-1], rest, piece]
    return vectorize_last(s, loops, lanes, shortest=shortest)


def most_vectors(s: Schedule, loop: LoopRef, lanes: int) -> int | None:
    """Returns how many vectors *loop* has at most, where its sizes have limits by which these are few; None otherwise."""
    extent, bounds = s.open_extent(loop), Bounds()
    if isinstance(extent, Const):
        return None
    for v in free_vars(extent):
        bounds = bounds.bind(v, *v.size_range)
    return next((n for n in range(1, MOST_LOOP_VECTORS + 1) if prove(extent <= index(n * lanes), bounds)), None)


def reduce_in_vectors(s: Schedule, ref: BlockRef, loops: Sequence[LoopRef], lanes: int) -> list[LoopRef]:
    """Puts the reduction outside a piece of the last spatial axis, which becomes vectors; returns the loops outside of both.

    *loops* are the block's own, those of its reduction the innermost.
    """
    count = len(reduce_axes(block_of(s, ref)))
    spatial, reduced = loops[:-count], loops[-count:]
    *outer, last = spatial
    if (s.extent(last) or FALLBACK_SIZE) > lanes * MOST_LOOP_VECTORS or s.extent(last) is None:
        rest, last = s.split(last, [None, lanes * MOST_LOOP_VECTORS])
        outer.append(rest)
    s.reorder([*outer, *reduced, last])
    start = s.decompose_reduction(ref, reduced[0])
    s.vectorize(last)
    s.vectorize(s.loops(start)[-1])
    return outer


def map_operations(block: Block) -> float:
    """Returns the arithmetic instructions of the formulas that a block stores."""
    return sum([operations_of(x.value, fma=True) for x in stores(block.body)])


def _vectorize(s: Schedule, loop: LoopRef) -> bool:
    try:
        with proving():
            s.vectorize(loop)
    except ScheduleError:  # the iterations depend on each other: it stays serial
        return False
    return True
