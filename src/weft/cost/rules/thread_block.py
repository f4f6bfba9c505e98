"""How many threads of a grid share a block, and how many results each computes."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from weft.cost.plans.plan import Candidate, Decision
from weft.cost.rules.row_threads import FULL_DEVICE, MEMORY_CYCLES
from weft.cost.rules.window import MOST_STATEMENTS, Slide
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


TALLEST_STRIP = 8
"""The most results below one another that a thread computes."""

INDEX_INSTRUCTIONS = 60.0
"""The instructions of a thread that divide its number into indices, for rows of 112 places (code for sm_90)."""

ISSUE_CYCLES = 4.0
"""Cycles from one instruction of a thread to the next that needs its result."""


@dataclass(frozen=True)
class WindowStrip(Decision):
    """How many *results* below one another a thread reduces from their windows, whose common elements it loads once."""

    question = "the results of a thread"
    of_grids = True
    results: int


def window_strip_plans(
    outputs: int, slide: Slide, taps: int, weights: int, target: Target
) -> Iterator[Candidate[WindowStrip]]:
    """Yields the strips along *slide* of *outputs* results in all, with the cycles of the instructions and of the first loads.

    Each window has *taps* elements; *weights* of its elements are loaded for each thread beside it, the same for the strip.
    """
    grid = target.grid
    lanes = 1 if grid is None else grid.lanes * grid.multiprocessors
    for n in range(1, TALLEST_STRIP + 1):
        if slide.extent % n or (n > 1 and n * taps > MOST_STATEMENTS):
            continue
        loads = slide.touched(n) * taps // slide.taps
        each = INDEX_INSTRUCTIONS + 2.0 * loads + weights + n * (taps + 2)
        yield Candidate(WindowStrip(n), 2 * MEMORY_CYCLES + each * max(ISSUE_CYCLES, outputs / n / lanes))
