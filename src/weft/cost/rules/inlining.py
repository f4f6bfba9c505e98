"""Whether a formula is inlined into its readers or materialised by a separate pass over memory."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Final

from weft.cost.demand import l2_cycles
from weft.cost.plans.plan import Candidate, Decision
from weft.cost.plans.planner import by_cost
from weft.targets import Target

GATHERED_COLUMN_CYCLES: Final = 0.7
"""Cycles in which a row's element is read from a column, with a line of the cache for each."""

TILED_CYCLES: Final = 0.5
"""Cycles in which an element is transposed to rows in registers, and read again."""


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
