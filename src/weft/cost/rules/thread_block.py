"""How many threads of a grid share a block, and how its loops are divided among them."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from weft.cost.plans.plan import Candidate, Decision
from weft.cost.rules.row_threads import FULL_DEVICE
from weft.targets import Target

BLOCKS = (256, 128, 64, 512)
"""Threads of a block that are tried, the most usual first: eight warps hide one another's loads, and leave each its registers."""


VECTOR_PART = 0.95
"""The time of a kernel whose threads access vectors, by that of one of elements; where threads are too few it takes longer."""


@dataclass(frozen=True)
class ThreadBlock(Decision):
    """The threads of a block, and how many elements side by side each computes of a result whose rows are whole vectors."""

    question = "the threads of a block"
    of_grids = True
    threads: int
    lanes: int = 1


def thread_block_plans(elements: int, target: Target) -> Iterator[Candidate[ThreadBlock]]:
    """Yields the blocks for *elements* results; threads beyond the last element are idle."""
    grid, wide = target.grid, target.access_lanes(32)
    for lanes in dict.fromkeys((1, wide)):
        accesses = 1.0 if lanes == 1 else VECTOR_PART if elements >= FULL_DEVICE * lanes else 1 / VECTOR_PART
        for n in BLOCKS:
            if grid is None or n <= grid.block:
                whole = -(-elements // (n * lanes)) * n * lanes
                yield Candidate(ThreadBlock(n, lanes), whole * accesses + BLOCKS.index(n))
