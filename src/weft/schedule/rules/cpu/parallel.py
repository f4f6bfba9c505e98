"""Sharing a nest's outer loops among threads."""

from __future__ import annotations

from collections.abc import Sequence

from weft.cost import FALLBACK_SIZE, Parallel, Planner, nest_cycles, parallel_plans, size_of
from weft.schedule.cursors.state import BlockRef, LoopRef
from weft.schedule.cursors.tree import loop_path, the_loop
from weft.schedule.legality.trust import proving
from weft.schedule.schedule import Schedule
from weft.support.errors import ScheduleError


def parallelize(s: Schedule, ref: BlockRef, loops: Sequence[LoopRef], p: Planner) -> None:
    """Fuses the outer ones of *loops*, those around *ref*, and runs them in parallel; all inside of them is scheduled.

    Fewer are fused where that many can't be: without the outermost rather than that one alone, if it may have one iteration.
    Where none can run in parallel, one thread computes the nest.
    """
    if not loops:
        return
    extents, nest = sizes(s, loops), the_loop(loop_path(s.function, loops[0]))
    least = [s.extent(f) or 1 for f in loops]
    wanted = p.decide(ref.name, Parallel, lambda m: parallel_plans(extents, least, nest_cycles(nest, m), m)).loops
    several = [loops[:n] for n in range(wanted, 1, -1)]
    inside = [loops[1:n] for n in range(wanted, 1, -1)] if least[0] == 1 else []
    outermost = [loops[:1]] if wanted else []
    for some in (*several, *inside, *outermost):
        try:
            with proving(), s.taking_back():
                s.parallel(s.fuse(list(some)) if len(some) > 1 else some[0])
        except ScheduleError:  # its iterations are not independent, or blocks lie between the loops
            continue
        return


def sizes(s: Schedule, loops: Sequence[LoopRef]) -> list[int]:
    """Returns the number of iterations of each of *loops*, a guess for one that is symbolic, or for one of none."""
    return [size_of(s.open_extent(f)) or FALLBACK_SIZE for f in loops]
