"""Which rule computes a contraction in tiles: whole reductions in registers, K blocking, or GEMV from memory."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from weft.cost.demand import fma_cycles, l2_cycles, l3_cycles, memory_cycles
from weft.cost.graph.memory import L2_SHARE
from weft.cost.plans.plan import Candidate, Decision
from weft.cost.rules.contractions.contraction import best_tile_cycles
from weft.cost.rules.contractions.gemv import ROWS, is_far
from weft.cost.rules.contractions.k_blocking import DepthProblem, is_deep, is_scattered, k_blocked_cycles
from weft.cost.rules.contractions.padding import LEAST_SHARE
from weft.cost.rules.sketch import SKETCHED
from weft.targets import Target

ROWS_SPEED = 24 / 14
"""How much faster memory is read in rows side by side than in tiles of columns."""


@dataclass(frozen=True)
class Rule(Decision):
    """The rule of a contraction: tiled, k_blocked, gemv, window or sketch."""

    question = "the rule of a contraction"
    name: str


def depth_plans(p: DepthProblem, target: Target) -> Iterator[Candidate[Rule]]:
    """Yields K blocking and plain tiles.

    The cycles are those of reading a panel of B again, against one that stays in cache, or of A from the third level of cache,
    against its streams from the second; of windows, those of all tiles. Blocks compute the products with padding, too, that
    tiles leave out; and tiles of windows, whose rows are next to one another in the image, may be so narrow that their panel
    stays. On Zen 4 held to AVX2, 44 channels in planes of 19 x 6 x 31 by 2 x 2 x 2 taps, half of them in padding, take 0.65 of
    the time in tiles; on Zen 3, 512 channels of 14 x 14 by 3 x 3 taps with a stride of two 0.65 in blocks (2026-11-28).
    """
    padding = max(0.0, 1 - p.inside - LEAST_SHARE)
    panel, stays = l2_cycles(p.panel * p.depth, target), l2_cycles(L2_SHARE * target.caches.l2, target)
    if is_deep(p, target) and p.tile is not None and p.inside < 1:
        yield Candidate(Rule("k_blocked"), k_blocked_cycles(p, p.tile, target) / (1 - padding))
        yield Candidate(Rule("tiled"), best_tile_cycles(p.tile, target))
    elif is_deep(p, target):
        yield Candidate(Rule("k_blocked"), stays)
        yield Candidate(Rule("tiled"), panel)
    elif is_scattered(p, target):
        products = p.places * p.depth * p.panel * 8 / target.isa.vector_bits
        yield Candidate(Rule("k_blocked"), l2_cycles(p.image, target) + padding * fma_cycles(products, target))
        yield Candidate(Rule("tiled"), l3_cycles(p.image, target))
    else:
        yield Candidate(Rule("tiled"), min(panel, stays))
        if p.rows > 1 and p.depth > 1:
            yield Candidate(Rule("k_blocked"), stays)


def gemv_or_tiles(row_bytes: int, matrix_bytes: int, depth: int, target: Target) -> Iterator[Candidate[Rule]]:
    """Yields GEMV and plain tiles for one row times a matrix; the cycles are those of reading the matrix."""
    reading = memory_cycles(matrix_bytes, target)
    if is_far(row_bytes, matrix_bytes, target) and depth >= 2 * ROWS:
        yield Candidate(Rule("gemv"), reading)
        yield Candidate(Rule("tiled"), reading * ROWS_SPEED)
    else:
        yield Candidate(Rule("tiled"), l3_cycles(matrix_bytes, target))
        if depth >= 2 * ROWS:
            yield Candidate(Rule("gemv"), reading)


def rule_plans(rules: Iterable[Candidate[Rule]]) -> Iterator[Candidate[Rule]]:
    """Yields the candidates of *rules*, then a sketch, whose sizes a search finds."""
    yield from rules
    yield Candidate(Rule("sketch"), SKETCHED)
