"""Whether a formula is inlined into its readers or materialised by a separate pass over memory."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Final

from weft.cost.demand import l2_cycles
from weft.cost.graph.packing import PANEL_VECTORS
from weft.cost.plans.plan import Candidate, Decision
from weft.cost.plans.planner import by_cost
from weft.targets import Target

MOST_REPEATED: Final = 5000
"""Nodes, with repetitions, of formulas that are inlined where they are read several times over by one reader."""

GATHERED_COLUMN_CYCLES: Final = 0.7
"""Cycles in which a row's element is read from a column, with a line of the cache for each."""

TILED_CYCLES: Final = 0.5
"""Cycles in which an element is transposed to rows in registers, and read again."""

PACKED_CYCLES: Final = 3.0
"""Cycles in which an element of an image is packed in a block of channels, or one of a matrix transposed, from the third level
and back to it."""

PLANES_CYCLES: Final = 7.0, 22.0
"""Cycles in which a line of a plane is waited for that a panel's tiles come to, beside many others, in the third level, and where
the pages of the planes are more than a core keeps the addresses of. Fitted on AMD's Zen 3 to convolutions of 512 channels to 512
by windows of 3 with a stride of two: packed images take 0.89 of the time for 1600 places, 0.72 for 2800 and 0.63 for 4000; of 256
channels of 3199 places to 256, 0.95; the transposes of 1024 x 1024 times 1024 x 1024 0.52, of 512 x 2048 times 512 x 512 0.65
(2026-11-29)."""

PAGES_KEPT: Final = 1024
"""The pages of an image whose addresses stay in the second-level TLB, beside those of the weights and the result."""


@dataclass(frozen=True)
class Inline(Decision):
    """Whether a block is inlined into its readers."""

    question = "inlining"
    inline: bool


def inline_plans(elements: int) -> Iterator[Candidate[Inline]]:
    """Yields both choices for a block that repeats no work in its readers; apart, it is written and read again."""
    yield Candidate(Inline(inline=True), 0.0)
    yield Candidate(Inline(inline=False), float(elements))


def turned_rows_plans(elements: int, reads: int) -> list[Candidate[Inline]]:
    """Returns both choices for a transposition to rows, whose *elements* are then *read* so many times, in cycles."""
    inlined = Candidate(Inline(inline=True), GATHERED_COLUMN_CYCLES * reads * elements)
    return by_cost([inlined, Candidate(Inline(inline=False), TILED_CYCLES * elements)])


def rearrangement_plans(
    width: int, nbytes: int, element_bytes: int, strides: Sequence[int], target: Target
) -> Iterator[Candidate[Inline]]:
    """Yields both choices for a block that makes rows, of *width* elements, of columns that lie *strides* bytes apart.

    By itself it goes by square tiles of vectors, which use up the cache lines that they read. That pays where its result, of
    *nbytes*, is still in the second-level cache afterwards, or where the strides are multiples of the period at which addresses
    share a set of the first-level cache: read in the order of the result, each line would be evicted before its next element is
    wanted.
    """
    tiles = width >= target.lanes(8 * element_bytes)
    stays = nbytes <= target.caches.l2 / 2
    conflicts = any(n % target.caches.set_period == 0 for n in strides)
    alone = tiles and (stays or conflicts)
    yield Candidate(Inline(inline=not alone), 0.0)
    yield Candidate(Inline(inline=alone), l2_cycles(nbytes, target))


def packed_factor_plans(nbytes: int, element_bytes: int, columns: int, target: Target) -> Iterator[Candidate[Inline]]:
    """Yields both choices for a left factor of *nbytes* that is put in order for a contraction, by cycles.

    It is an image in planes that is packed in blocks of channels, or a matrix that is transposed. Each panel of the *columns* of
    the contraction goes through all of it.
    """
    near, far = PLANES_CYCLES
    waiting = 0.0 if nbytes <= target.caches.l2 else near if nbytes <= PAGES_KEPT * target.caches.page else far
    panels = columns / (PANEL_VECTORS * target.lanes(8 * element_bytes))
    yield Candidate(Inline(inline=True), panels * waiting * nbytes / target.caches.line)
    yield Candidate(Inline(inline=False), PACKED_CYCLES * nbytes / element_bytes)
