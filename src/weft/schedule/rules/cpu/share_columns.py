"""Sharing the columns of updates among threads: each applies all updates, in order, to columns of its own.

for i in range(0, 50000):                           for c in parallel(0, 2):
    for j in range(0, 64):                  ->          for i in range(0, 50000):
        y[t[i], j] = y[t[i], j] + u[i, j]                   for j in range(0, 32):
                                                                y[t[i], c * 32 + j] = ...

Any number of threads computes the same: the updates of an element keep their order.
"""

from __future__ import annotations

from collections.abc import Sequence

from weft.cost import Planner, SharedColumns, nest_cycles, shared_column_plans
from weft.schedule.cursors.state import BlockRef, LoopRef
from weft.schedule.cursors.tree import loop_path, the_loop
from weft.schedule.legality.trust import proving
from weft.schedule.rules.block_facts import block_of, is_reduction
from weft.schedule.schedule import Schedule
from weft.support.errors import ScheduleError


def share_columns(
    s: Schedule, ref: BlockRef, ordered: Sequence[LoopRef], columns: Sequence[LoopRef], p: Planner
) -> list[LoopRef] | None:
    """Runs pieces of the first loop of *columns* in parallel, around the *ordered* loops; returns the loops of a piece.

    Returns None, and leaves the loops as they are, where the block is no update of columns, or one thread is as fast.
    """
    if not columns or is_reduction(block_of(s, ref)):
        return None
    extent = s.extent(columns[0])
    lanes = p.lanes(block_of(s, ref).writes[0].buffer.dtype.bits)
    whole = lanes if len(columns) == 1 else 1  # a piece is of whole vectors, or of whole rows of the columns inside
    if extent is None or extent < 2 * whole:
        return None
    nest = the_loop(loop_path(s.function, ordered[0]))
    made = p.decide(
        ref.name, SharedColumns, lambda m: shared_column_plans(extent, whole, nest_cycles(nest, m) / lanes, m)
    )
    if made.pieces == 1:
        return None
    try:
        with proving(), s.taking_back():
            outer, inner = s.split(columns[0], [made.pieces, None])
            s.reorder([outer, *ordered])
            s.parallel(outer, inside=len(ordered))
    except ScheduleError:  # the updates of a column read others, or other blocks take part in a step
        return None
    return [inner, *columns[1:]]
