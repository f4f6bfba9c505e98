"""Whether the threads of a block share a reduction, or each reduces for results of its own."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from weft.cost.plans.plan import Candidate, Decision
from weft.targets import Target

FULL_DEVICE = 16384
"""Threads that keep a device at work; fewer leave its multiprocessors idle."""

COMBINING_CYCLES = 40.0
"""What each halving of the partial results of a block takes: an exchange through shared memory, and a barrier."""


APART_CYCLES = 8.0
"""What a term takes that neighbouring threads read from rows of their own: each moves a sector, of which it uses one word."""


@dataclass(frozen=True)
class BlockReduction(Decision):
    """The threads that reduce for one result together; 0: each thread has a result of its own."""

    question = "the threads that share a reduction"
    of_grids = True
    threads: int


def block_reduction_plans(
    results: int, terms: int, target: Target, *, side_by_side: bool = False
) -> Iterator[Candidate[BlockReduction]]:
    """Yields the choices for *results* of so many *terms* each; the cycles are those until the last thread is done.

    Where the terms of a result lie *side_by_side*, threads that have results of their own read far from one another.
    """
    each = APART_CYCLES if side_by_side else 1.0
    yield Candidate(BlockReduction(0), each * terms * max(1, results // FULL_DEVICE))
    for threads in (32, 64, 128, 256):
        if target.grid is not None and threads <= min(target.grid.block, terms):
            turns = max(1, results * threads // FULL_DEVICE)
            steps = COMBINING_CYCLES * (threads.bit_length() - 1)
            yield Candidate(BlockReduction(threads), (-(-terms // threads) + steps) * turns)
