"""A reduction by one thread per result: the accumulator is in a register, and the epilogue follows at once.

for i, j, r: C[i, j] += A[i, r] * B[r, j]           for b, t in grid:
for i, j:    D[i, j] = max(C[i, j], 0.0)     ->         for r: c[0] += A[i, r] * B[r, j]
                                                        D[i, j] = max(c[0], 0.0)
"""

from __future__ import annotations

from weft.schedule.cursors.state import BlockRef
from weft.schedule.legality.placement import readers
from weft.schedule.legality.trust import proving
from weft.schedule.rules.block_facts import block_of, inputs_of, is_reduction, merged_axes, spatial_axes
from weft.schedule.rules.grid.thread_elements import bind_elements
from weft.schedule.schedule import Schedule
from weft.support.errors import ScheduleError


def reduce_in_threads(s: Schedule, ref: BlockRef, threads: int) -> bool:
    """Lets each thread reduce for one element of the epilogue of *ref*, or of a copy; tells whether that was legal."""
    trial = Schedule(s.program)
    try:
        with proving():
            _place(trial, ref, threads)
    except ScheduleError:  # an output that is updated in place, say
        return False
    _place(s, ref, threads)
    return True


def _place(s: Schedule, ref: BlockRef, threads: int) -> None:
    reader = reader_of(s, ref)
    thread = bind_elements(s, reader, threads)
    if thread is None:
        raise ScheduleError(f"the elements of {reader.name} are not computed by threads")
    s.compute_at(ref, thread)
    s.set_scope(ref, "local")


def reader_of(s: Schedule, ref: BlockRef) -> BlockRef:
    """Returns the epilogue of a reduction, or a copy of its results that is made now."""
    return epilogue_of(s, ref) or s.cache_write(ref, "local")


def epilogue_of(s: Schedule, ref: BlockRef) -> BlockRef | None:
    """Returns the one reader of a reduction that reads each element once, for an element of its own; None without one.

    Several axes of the reader may be merged in one of the reduction's.
    """
    block = block_of(s, ref)
    users = readers(s.function, block)
    if len(users) != 1 or is_reduction(users[0]) or len(block.writes) != 1:
        return None
    made = [x for x in inputs_of(users[0]) if x.buffer is block.writes[0].buffer]
    axes = [a.var for a in spatial_axes(users[0])]
    if len(made) != 1:
        return None
    found = [merged_axes(i, users[0]) for i in made[0].indices]
    places = [v for merged in found for v in merged]
    return BlockRef(users[0].name) if len(axes) == len(places) and set(axes) == set(places) else None
