"""Row-by-row computation of several reductions: softmax and normalisations as one pass over memory."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from math import prod

from weft.cost.demand import l2_cycles, l3_cycles
from weft.cost.plans.plan import Candidate, Decision
from weft.cost.rules.parallel import enough_tasks
from weft.targets import Target

ROW_L2_SHARE = 0.25
"""The part of the second-level cache that the intermediate results of a row may fill."""


ROWS_L1_SHARE = 0.1
"""The part of the first-level cache that the elements of rows which go through each step together may fill.

Softmax of rows of 256 elements takes 0.93 of the time with 4 rows, 0.98 with 32; of 1024 0.93 with two and 1.07 with 32, of 4096
1.07 with two (one core of a Zen 5 server, 2026-11-28)."""

MOST_ROWS = (16, 8, 4, 2, 1)
"""The numbers of rows that are tried, beside all that there are: with more, too little is left of the wait to matter."""

SINGLE_BITS = 32
"""The bits of an element of most rows."""


@dataclass(frozen=True)
class OnePass(Decision):
    """Whether several reductions are computed row by row, instead of each in tiles of its own."""

    question = "the order of several reductions"
    by_rows: bool


def one_pass_plans(rows: Sequence[int], touched: int, target: Target) -> Iterator[Candidate[OnePass]]:
    """Yields both choices for loops over *rows* and intermediate results of *touched* bytes, with the cycles of reading them."""
    pays = enough_tasks(rows, target) and touched / prod(rows) <= target.caches.l2 * ROW_L2_SHARE
    yield Candidate(OnePass(pays), l2_cycles(touched, target))
    yield Candidate(OnePass(not pays), l3_cycles(touched, target))


@dataclass(frozen=True)
class RowsAtOnce(Decision):
    """How many rows go through each step of a row-by-row computation before the next step."""

    question = "the rows of a step"
    rows: int


def rows_at_once_plans(
    rows: Sequence[int], touched: int, reductions: int, target: Target
) -> Iterator[Candidate[RowsAtOnce]]:
    """Yields the numbers of rows that go through each step together, of loops over *rows*, with the cycles that a row waits.

    A reduction ends with a chain of operations on fewer and fewer lanes, for which the next step waits, but the same step of
    another row does not. The working set of a step, *touched* bytes for each row, stays in the first level for all of them.
    """
    halvings = (target.isa.vector_bits // SINGLE_BITS).bit_length() - 1
    chain = reductions * halvings * target.core.fma_latency
    for n in sorted({*MOST_ROWS, min(rows[-1], MOST_ROWS[0])}, reverse=True):
        steps = -(-rows[-1] // n)
        fits = n == 1 or n * touched <= target.caches.l1 * ROWS_L1_SHARE
        if n <= rows[-1] and fits and enough_tasks([*rows[:-1], steps], target):
            yield Candidate(RowsAtOnce(n), chain * steps / rows[-1])
    if not enough_tasks(rows, target):
        yield Candidate(RowsAtOnce(1), float(chain))


@dataclass(frozen=True)
class SharePatches(Decision):
    """Whether threads share the patches of a Winograd convolution, each with memory of its own, instead of each stage."""

    question = "the loops that threads share"
    patches: bool


def patch_plans(patches: Sequence[int], target: Target) -> Iterator[Candidate[SharePatches]]:
    """Yields both choices: patches are shared where there are enough of them for all cores.

    A grid, which no loop of the host is around, has its blocks share them: the only choice.
    """
    enough = target.grid is not None or enough_tasks(patches, target)
    yield Candidate(SharePatches(enough), 0.0)
    if target.grid is None:
        yield Candidate(SharePatches(not enough), 1.0)
