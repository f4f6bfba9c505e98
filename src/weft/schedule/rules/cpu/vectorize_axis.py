"""Vectorising the innermost of some loops, or a spatial one inside of a reduction."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress

from weft.cost import (
    FALLBACK_SIZE,
    JAMMED,
    MOST_LOOP_VECTORS,
    Jam,
    Planner,
    is_long_formula,
    jam_plans,
    operations_of,
)
from weft.ir import Bounds, Const, free_vars, index, prove
from weft.loop import Block, stores
from weft.schedule.cursors.state import BlockRef, LoopRef
from weft.schedule.legality.trust import proving
from weft.schedule.rules.block_facts import block_of, reduce_axes
from weft.schedule.schedule import Schedule
from weft.support.dtypes import f32
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
    Formulas of narrow elements are computed in float32, of which a vector of theirs is several.
    """
    *outer, last = loops
    block, extent = block_of(s, ref), s.extent(last)
    operations = sum([operations_of(x.value, fma=True) for x in stores(block.body)])
    if extent is not None and extent > MOST_LOOP_VECTORS * lanes and is_long_formula(operations):
        most = JAMMED[-1] * p.lanes(f32.bits)
        numbers = [n for n in JAMMED if n * lanes <= most and _go_on(block, n * lanes, extent)]
        if len(numbers) > 1:
            together = p.decide(ref.name, Jam, lambda _: jam_plans(numbers, extent // lanes * operations)).vectors
            with suppress(ScheduleError), proving(), s.taking_back():
                rest, piece = s.split(last, [None, lanes * together])
                s.vectorize(piece)
                return [*outer, rest]
    return vectorize_last(s, loops, lanes, shortest=shortest)


def _go_on(block: Block, piece: int, extent: int) -> bool:
    """Tells whether pieces of a loop over the last axes of *block*, *extent* elements, each go on along whole rows of these."""
    row = 1
    for axis in reversed(block.axes):
        if row < extent and isinstance(axis.extent, Const):
            row *= int(axis.extent.value)
            if row % piece and piece % row:
                return False
    return extent % piece == 0


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


def _vectorize(s: Schedule, loop: LoopRef) -> bool:
    try:
        with proving():
            s.vectorize(loop)
    except ScheduleError:  # the iterations depend on each other: it stays serial
        return False
    return True
