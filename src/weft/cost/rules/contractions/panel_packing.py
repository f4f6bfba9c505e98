"""Packing a panel of a B operand that lies in memory as it is, once for all rows of A.

After Goto and van de Geijn, "Anatomy of high-performance matrix multiplication" (2008), section 4.2: a panel of B is copied to
contiguous memory, where its rows take no more lines, pages and sets of a cache than they have bytes for.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

from weft.cost.demand import Demand, l2_cycles, load_cycles
from weft.cost.plans.plan import Candidate, Decision
from weft.cost.rules.contractions.contraction import TileProblem, best_tile_cycles
from weft.targets import Target


@dataclass(frozen=True)
class PackPanel(Decision):
    """Whether each panel of B is copied before it is multiplied."""

    question = "the panels of a B operand that is not packed"
    pack: bool


def pack_panel_plans(p: TileProblem, target: Target) -> Iterator[Candidate[PackPanel]]:
    """Yields both choices for the problem *p* of the tiles, by the cycles of the best of them and of the copies.

    Either waits for B where it is first read, the tiles or the copies.
    """
    yield Candidate(PackPanel(pack=False), best_tile_cycles(p, target))
    yield Candidate(PackPanel(pack=True), best_tile_cycles(packed_problem(p), target) + _copying(p, target))


def packed_problem(p: TileProblem) -> TileProblem:
    """Returns the problem of the tiles where panels are packed: rows of B lie side by side."""
    return replace(p, right_stride=0)


def _copying(p: TileProblem, target: Target) -> float:
    """Returns the cycles of the copies of all panels: pieces of rows are loaded, and stored side by side."""
    nbytes = p.depth * p.last * p.column * p.element_bytes
    vectors = nbytes * 8 / target.isa.vector_bits
    reading = l2_cycles(nbytes, target) / target.caches.scattered_part
    return Demand(arithmetic=0.0, loads=load_cycles(vectors, target), stores=vectors, l2=reading).cycles
