"""How many threads of a grid share a block, and how its loops are divided among them."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from weft.cost.plans.plan import Candidate, Decision
from weft.targets import Target

BLOCKS = (256, 128, 64, 512)
"""Threads of a block that are tried, the most usual first: eight warps hide one another's loads, and leave each its registers."""


@dataclass(frozen=True)
class ThreadBlock(Decision):
    """The threads of a block of which each computes one element of a result."""

    question = "the threads of a block"
    of_grids = True
    threads: int


def thread_block_plans(elements: int, target: Target) -> Iterator[Candidate[ThreadBlock]]:
    """Yields the blocks for *elements* results; threads beyond the last element are idle."""
    grid = target.grid
    for n in BLOCKS:
        if grid is None or n <= grid.block:
            yield Candidate(ThreadBlock(n), float(-(-elements // n) * n + BLOCKS.index(n)))
