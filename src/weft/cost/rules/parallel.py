"""How a nest is shared among threads: as few of its outer loops in parallel as keep every core busy.

The split depends on the shape and the machine, never on the number of threads of a call.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from math import prod

from weft.cost.plans.plan import Candidate, Decision
from weft.targets import Target

TASKS_PER_CORE = 4
"""Pieces that a core should get at least, so that uneven pieces even out."""

MANY_INDICES = 1 << 14
"""Indices from which on they are checked row by row, so that threads share the rows."""


@dataclass(frozen=True)
class Parallel(Decision):
    """The number of outer loops that are fused and run in parallel; 0 for none."""

    question = "the loops that threads share"
    loops: int


def parallel_plans(extents: Sequence[int], work: int, target: Target) -> Iterator[Candidate[Parallel]]:
    """Yields the numbers of outer loops, of *extents*, to run in parallel, for *work* scalar operations in all.

    The cost is in scalar operations. Uneven pieces leave cores idle; of little work, nothing is left to do by the time that
    another thread is awake.
    """
    waking = work if work < target.core.wake_operations else 0
    for n in range(1, len(extents) + 1):
        tasks = prod(extents[:n])
        joins_next = n < len(extents) and extents[n] == 1 and tasks < wanted_tasks(target)  # a loop of one iteration
        if tasks >= 2 and not joins_next:
            yield Candidate(Parallel(n), waking + work * _share(tasks, target))
    yield Candidate(Parallel(0), work)


def _share(tasks: int, target: Target) -> float:
    """Returns the part of the work that the busiest core does."""
    cores = max(2, target.cores)
    return (1 + cores / (2 * min(tasks, wanted_tasks(target)))) / cores


def wanted_tasks(target: Target) -> int:
    """Returns in how many pieces work is to be shared among the cores."""
    return max(2, target.cores) * TASKS_PER_CORE


def enough_tasks(extents: Sequence[int], target: Target) -> bool:
    """Tells whether the iterations of loops of *extents* keep every core busy, though few of them are left at the end."""
    return prod(extents) >= 2 * target.cores
