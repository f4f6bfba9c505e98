"""Sharing a nest's outer loops among threads."""

from __future__ import annotations

from collections.abc import Sequence

from weft.cost import FALLBACK_SIZE, Parallel, Planner, parallel_plans
from weft.schedule.cursors.state import BlockRef, LoopRef
from weft.schedule.schedule import Schedule
from weft.support.errors import ScheduleError


def parallelize(s: Schedule, ref: BlockRef, loops: Sequence[LoopRef], work: int, p: Planner) -> None:
    """Fuses the outer ones of *loops*, those around *ref*, and runs them in parallel.

    *work* is the number of scalar operations of the whole nest.
    """
    if not loops:
        return
    extents = sizes(s, loops)
    n = p.decide(ref.name, Parallel, lambda m: parallel_plans(extents, work, m)).loops
    if n == 0:
        return
    try:
        s.parallel(s.fuse(list(loops[:n])) if n > 1 else loops[0])
    except ScheduleError:  # its iterations are not independent: one thread computes it
        return


def sizes(s: Schedule, loops: Sequence[LoopRef]) -> list[int]:
    """Returns the number of iterations of each of *loops*, a guess for a symbolic one."""
    return [s.extent(f) or FALLBACK_SIZE for f in loops]
