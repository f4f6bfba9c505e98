"""How many rows of attention's scores are computed, normalized and multiplied by the values while they are in cache."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

from weft.cost.demand import l3_cycles, memory_cycles
from weft.cost.graph.memory import L2_SHARE, OTHERS_SHARE
from weft.cost.plans.plan import Candidate, Decision
from weft.cost.rules.attention_tile import AttentionSizes
from weft.targets import Target

SCORE_PASSES: Final = 6
"""Transfers of each score: written by a product and by softmax, read for the largest, the sum, the quotients and a product."""

SCORE_CYCLES: Final = 0.7
"""Cycles of arithmetic for a score, most of them softmax's, that hide as many cycles of its transfers."""

CALLS_CYCLES: Final = 30000.0
"""Cycles of the three kernels of a block beside their work: calls, and threads that wait for one another."""

LEAST_ROWS: Final = 32
"""Rows of the smallest block: of fewer, products read their panels too often."""


@dataclass(frozen=True)
class AttentionBlock(Decision):
    """The *rows* of a block of scores, of one head; 0: the scores of all heads are computed at once."""

    question = "the rows of attention's scores that are in cache at a time"
    rows: int


def attention_block_plans(p: AttentionSizes, nbytes: int, target: Target) -> Iterator[Candidate[AttentionBlock]]:
    """Yields the divisors of the rows that blocks may have, with the cycles of moving scores of *nbytes* each.

    All keys of a row are in its block; they are packed once for all blocks of a head.
    """
    row = p.keys * nbytes
    scores = p.batch * p.rows * p.keys
    yield Candidate(AttentionBlock(0), scores * _visible_cycles(scores * nbytes, nbytes, target))
    for rows in range(LEAST_ROWS, p.rows + 1):
        blocks = p.batch * (p.rows // rows)
        if p.rows % rows == 0 and blocks > 1:
            moved = scores * _visible_cycles(rows * row, nbytes, target)
            yield Candidate(AttentionBlock(rows), moved + blocks * CALLS_CYCLES)


def _visible_cycles(size: int, nbytes: int, target: Target) -> float:
    """Returns the cycles of moving a score of *nbytes*, one of *size* bytes, beyond those that arithmetic hides.

    The weights that softmax makes of the scores take as much memory.
    """
    caches = target.caches
    if 2 * size < caches.l2 * L2_SHARE:
        return 0.0
    moved = SCORE_PASSES * nbytes
    cycles = l3_cycles(moved, target) if 2 * size < caches.l3 * OTHERS_SHARE else memory_cycles(moved, target)
    return max(0.0, cycles - SCORE_CYCLES)
