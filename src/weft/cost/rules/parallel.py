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

PIECES_TIME = 1.2
"""The time of the pieces of columns, one after another, over that of all columns at once: each reads all indices, and its part of
every row. 1.22 for rows of 64 floats, 1.07 for rows of 512 at places of their own, on one core of a Xeon shared with others."""

MANY_INDICES = 1 << 14
"""Indices from which on they are checked row by row, so that threads share the rows."""


@dataclass(frozen=True)
class Parallel(Decision):
    """The number of outer loops that are fused and run in parallel; 0 for none."""

    question = "the loops that threads share"
    loops: int


def parallel_plans(
    extents: Sequence[int], least: Sequence[int], cycles: float, target: Target
) -> Iterator[Candidate[Parallel]]:
    """Yields the numbers of outer loops, of *extents*, to run in parallel, of a nest that takes one core *cycles* in all.

    Until another thread takes part, the one that begins the loop computes alone; uneven pieces leave cores idle at the end.
    Extents are guesses where they are symbolic, and *least* what they certainly are: a batch of unknown size is often one.
    """
    alone = min(cycles, float(target.core.wake_cycles))
    for n in range(1, len(extents) + 1):
        tasks, certain = prod(extents[:n]), prod(least[:n])
        is_short = n < len(extents) and certain < wanted_tasks(target)
        joins_next = is_short and (extents[n] == 1 or certain < tasks)  # one iteration more, or those behind a guess
        if tasks >= 2 and not joins_next:
            shared = (cycles - alone) * _share(tasks, target)
            yield Candidate(Parallel(n), target.core.fork_cycles + alone + shared)
    yield Candidate(Parallel(0), cycles)


def _share(tasks: int, target: Target) -> float:
    """Returns the part of the work that the busiest core does."""
    cores = max(2, target.cores)
    return (1 + cores / (2 * min(tasks, wanted_tasks(target)))) / cores


@dataclass(frozen=True)
class SharedColumns(Decision):
    """The number of pieces of columns that threads update, each by all updates in their order; 1 for all columns at once."""

    question = "the pieces of columns that threads update"
    pieces: int


def shared_column_plans(columns: int, lanes: int, cycles: float, target: Target) -> Iterator[Candidate[SharedColumns]]:
    """Yields the numbers of pieces of *columns* that updates of one core's *cycles*, in vectors of *lanes*, may be shared in.

    Each piece reads all indices: there are no more of them than cores, and they are whole vectors of the same number.
    """
    alone = min(cycles, float(target.core.wake_cycles))
    yield Candidate(SharedColumns(1), cycles)
    for pieces in range(2, max(2, target.cores) + 1):
        if columns % (pieces * lanes) == 0:
            shared = (cycles - alone) * PIECES_TIME / pieces
            yield Candidate(SharedColumns(pieces), target.core.fork_cycles + alone + shared)


def wanted_tasks(target: Target) -> int:
    """Returns in how many pieces work is to be shared among the cores."""
    return max(2, target.cores) * TASKS_PER_CORE


def enough_tasks(extents: Sequence[int], target: Target) -> bool:
    """Tells whether the iterations of loops of *extents* keep every core busy, though few of them are left at the end."""
    return prod(extents) >= 2 * target.cores
