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
class SharePatches(Decision):
    """Whether threads share the patches of a Winograd convolution, each with memory of its own, instead of each stage."""

    question = "the loops that threads share"
    patches: bool


def patch_plans(patches: Sequence[int], target: Target) -> Iterator[Candidate[SharePatches]]:
    """Yields both choices: patches are shared where there are enough of them for all cores."""
    enough = enough_tasks(patches, target)
    yield Candidate(SharePatches(enough), 0.0)
    yield Candidate(SharePatches(not enough), 1.0)
