"""How many columns a panel of a packed matrix has.

Where a product has many rows, that depends on the loads of the largest register tile alone. Few rows leave a rest for which such
a tile is too high or too low, so that the tiles of each width are estimated (`rules.contraction`).
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from math import inf
from typing import Final

from weft.cost.graph.packing import PANEL_VECTORS, Panel, panel_vector_time
from weft.cost.plans.plan import Candidate
from weft.cost.plans.planner import by_cost
from weft.cost.rules.contractions.contraction import TileProblem, tile_plans
from weft.support.dtypes import f32
from weft.targets import Target

UNKNOWN_VECTORS: Final = 2 * PANEL_VECTORS
"""Vectors of the longest row of a matrix of unknown width that counts."""

WORTH_OF_TILES: Final = 0.95
"""The most that the tiles of a width may take, of the time of those of the width for many rows, to be preferred.

On one core of AMD's Zen 3, 5 rows times 427 x 857 took 0.73 in one tile of two vectors of the time in tiles of 3 and of 2 rows by
three, and 6 rows 0.87; the estimate is 0.79 and 0.91.
"""

FEWEST_ESTIMATED_ROWS: Final = 3
"""Rows from which on tiles are estimated: one or two take as long as reading the matrix, in panels of any width."""


@dataclass(frozen=True)
class PanelProblem:
    """A matrix of *columns* and *depth* rows of elements of *bits*, by which *rows* are multiplied; None for unknown numbers."""

    columns: int | None
    bits: int
    rows: int | None = None
    depth: int | None = None


def panel_plans(p: PanelProblem, target: Target) -> list[Candidate[Panel]]:
    """Returns the widths of panels, by the time of all panels, padding included.

    Few columns have panels of a power of two. Where it is not known how many there are, the time is the mean of that of some
    numbers.
    """
    lanes = target.lanes(p.bits)
    if p.columns is not None and p.columns <= lanes:
        return [Candidate(Panel(1 << (p.columns - 1).bit_length()), 1.0)]
    vectors = [-(-p.columns // lanes)] if p.columns is not None else range(1, UNKNOWN_VECTORS + 1)
    widths = range(PANEL_VECTORS, 0, -1)
    times = {v: sum(-(-n // v) for n in vectors) / len(vectors) * v * panel_vector_time(v, target) for v in widths}
    usual = min(widths, key=times.__getitem__)
    tiles = {v: _tiles_cycles(p, v, target) for v in widths}
    best = min(widths, key=tiles.__getitem__)
    if tiles[best] < WORTH_OF_TILES * tiles[usual]:
        times = tiles
    return by_cost([Candidate(Panel(lanes * v), times[v]) for v in widths])


@lru_cache(maxsize=1024)
def _tiles_cycles(p: PanelProblem, vectors: int, target: Target) -> float:
    """Returns the cycles of a product in the best tiles that are a panel of *vectors* wide.

    They are infinite where they are not estimated: its sizes are not known, the rows are too few, or elements are narrower than
    the sums, whose vectors a panel has more of then.
    """
    if p.rows is None or p.rows < FEWEST_ESTIMATED_ROWS or not p.depth or p.columns is None or p.bits < f32.bits:
        return inf
    width, element = target.lanes(p.bits) * vectors, p.bits // 8
    problem = TileProblem(
        row=p.rows,
        column=-(-p.columns // width),
        last=width,
        depth=p.depth,
        element_bytes=element,
        right_bytes=p.columns * p.depth * element,
        left_stride=p.depth * element,
        right_stride=width * element,
    )
    tiles = [c for c in tile_plans(problem, target) if (c.decision.columns, c.decision.width) == (1, width)]
    return min([c.cycles for c in tiles], default=inf)
