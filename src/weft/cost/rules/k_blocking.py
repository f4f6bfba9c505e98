"""K blocking: the blocks kc and mc of Low, Igual, Smith and Quintana-Orti, "Analytical modeling is enough for high-performance
BLIS" (2016), section 4, for contractions whose panel of B does not stay in the second-level cache.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from weft.cost.graph.memory import L2_SHARE
from weft.cost.graph.packing import PANEL_VECTORS
from weft.cost.plans.plan import Candidate, Decision
from weft.cost.rules.parallel import wanted_tasks
from weft.targets import Target

PANEL_SHARE = 0.35
"""The part of the second-level cache that a panel may fill in a block of the reduction: sums and rows of A follow."""

SUMS_SHARE = 0.125
"""The part that the sums of a block of rows may fill."""

FEWEST_ROWS = 64
"""Rows of a block below which multiplying them takes no longer than reading a panel for them."""


@dataclass(frozen=True)
class KBlocks(Decision):
    """The number of blocks that the reduction is cut into, and which of its axes is cut."""

    question = "the blocks of the reduction"
    axis: int
    blocks: int


@dataclass(frozen=True)
class RowBlock(Decision):
    """The most rows of the result whose partial sums stay in cache between blocks of the reduction."""

    question = "the rows of a block"
    rows: int


def is_deep(panel: int, depth: int, rows: int, target: Target) -> bool:
    """Tells whether a panel of B, *panel* bytes for each of *depth* steps, leaves the cache between tiles of *rows*."""
    several = rows > target.isa.vector_registers // PANEL_VECTORS
    return several and panel * depth > L2_SHARE * target.caches.l2


def k_block_plans(panel: int, sizes: list[int], target: Target) -> Iterator[Candidate[KBlocks]]:
    """Yields the cuts of a reduction over axes of *sizes*: as few blocks as let a panel stay, even ones if there are any.

    The cycles are those of adding the partial sums of each block, in units of one block's.
    """
    depth = 1
    for n in sizes:
        depth *= n
    least = max(2, -(-panel * depth // int(PANEL_SHARE * target.caches.l2)))
    axis = next((n for n, size in enumerate(sizes) if size >= least), sizes.index(max(sizes)))
    least = min(least, sizes[axis])
    even = [n for n in range(least, min(sizes[axis], 2 * least) + 1) if sizes[axis] % n == 0]
    best = even[0] if even else least
    yield Candidate(KBlocks(axis, best), float(best))
    for n in dict.fromkeys([*even, 2 * best]):
        if best < n <= sizes[axis]:
            yield Candidate(KBlocks(axis, n), float(n))


def row_block_plans(panel: int, tasks: int, rows: int, target: Target) -> Iterator[Candidate[RowBlock]]:
    """Yields the rows of a block: as many as keep their sums in cache, but enough blocks for all cores.

    *tasks* are those that there are without cutting the *rows*. The cycles are those of reading panels, in units of one reading.
    """
    pieces = -(-wanted_tasks(target) // tasks)
    most = min(int(SUMS_SHARE * target.caches.l2) // panel, max(FEWEST_ROWS, -(-rows // pieces)))
    for n in dict.fromkeys([most, max(1, most // 2)]):
        yield Candidate(RowBlock(n), float(-(-rows // max(1, n))))
