"""Sharing a nest's outer loops among threads."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod

from weft.schedule.rules.facts import FALLBACK_SIZE
from weft.schedule.schedule import Schedule
from weft.schedule.state import LoopRef
from weft.support.errors import ScheduleError
from weft.targets.target import Target

SMALLEST_WORK = 16384
"""Scalar operations below which waking another thread costs more than it saves (a few microseconds)."""

TASKS_PER_CORE = 4
"""How many pieces a core should get at least, so that uneven pieces even out."""


def parallelize(s: Schedule, loops: Sequence[LoopRef], work: int, target: Target) -> None:
    """Fuses as many of the outer *loops* as it takes to keep every core busy, and runs them in parallel.

    The decomposition depends on the shape and the target, never on the number of threads. *work* is the number of scalar
    operations of the whole nest.
    """
    if work < SMALLEST_WORK or not loops:
        return
    count, n = 1, 0
    while n < len(loops) and count < wanted_tasks(target):
        count *= s.extent(loops[n]) or FALLBACK_SIZE
        n += 1
    if count < 2:
        return
    try:
        s.parallel(s.fuse(list(loops[:n])) if n > 1 else loops[0])
    except ScheduleError:  # its iterations share something; one thread computes it
        return


def enough_tasks(s: Schedule, loops: Sequence[LoopRef], target: Target) -> bool:
    """Tells whether the iterations of *loops* keep every core busy, though few of them are left at the end."""
    return prod([s.extent(f) or FALLBACK_SIZE for f in loops]) >= 2 * target.cores


def wanted_tasks(target: Target) -> int:
    """Returns in how many pieces work is to be shared among the cores."""
    return max(2, target.cores) * TASKS_PER_CORE
