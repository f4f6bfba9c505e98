"""Packing a panel of a B operand that lies in memory as it is, once for all rows of A.

After Goto and van de Geijn, "Anatomy of high-performance matrix multiplication" (2008), section 4.2: a panel of B is copied to
contiguous memory, where its rows take no more lines, pages and sets of a cache than they have bytes for. So is the part of an
image that the windows of a panel access, with its padding: the image itself then needs no padded copy.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

from weft.cost.demand import LOAD_PRESSURE, Demand, l2_cycles, l3_cycles, load_cycles, memory_cycles
from weft.cost.plans.plan import Candidate, Decision
from weft.cost.rules.contractions.contraction import TileProblem, best_tile_cycles
from weft.targets import Target

WRITTEN_TIMES = 3
"""How often the bytes of a copy that no cache holds go through memory: the copy's lines are read before they are written."""

WINDOWS_L1_SHARE = 0.35
"""The part of the first-level cache that the lines of a panel's windows may fill, for all tiles to find them there."""

PIECE_CYCLES = 12.0
"""Cycles of a piece of a row that is packed, beside those of its vectors. On Zen 3, 3 x 1 taps on 8 groups of 15 channels of
25 x 88 places to 3 took 1.3 of the time in packed panels, 3 x 3 taps on 2 groups of 156 channels of 9 x 9 to 9 1.2
(2026-11-30)."""


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
    reading = l2_cycles(nbytes, target) / target.caches.scattered_part
    return replace(_vector_copy(nbytes, target), l2=reading).cycles


@dataclass(frozen=True)
class WindowPanelProblem:
    """An image whose windows are multiplied in panels, by tiles of rows for each.

    There are so many *panels*, and *tiles* that use each. The windows of one access *lines* bytes of the image in whole cache
    lines, *panel* bytes in so many *pieces* without the gaps. The image has *image* bytes; where it *is_padded*, it is a copy
    that is made before, unless panels are packed.
    """

    panels: int
    tiles: int
    lines: int
    panel: int
    pieces: int
    image: int
    is_padded: bool


def pack_window_plans(p: WindowPanelProblem, target: Target, *, is_shared_out: bool) -> Iterator[Candidate[PackPanel]]:
    """Yields both choices, by the cycles of the copies, and of what each tile of rows waits for the lines of a panel.

    They are packed only where panels keep all cores busy (*is_shared_out*), since a panel is one core's. A panel waits for an
    image from beyond the second level in either case: these cycles are left out. On one core of AMD's Zen 3, 241 channels of 946
    places to 121 by 3 taps take 0.72 of the time in packed panels, and 4 x 328 channels of 4571 places to 8 in 4 groups, whose
    padded copy is as large as the image, 0.45 (2026-11-30).
    """
    waiting = 0.0
    if p.lines > target.caches.l1 * WINDOWS_L1_SHARE:
        waiting = LOAD_PRESSURE * l2_cycles(p.lines, target) / target.caches.scattered_part * p.tiles * p.panels
    before = _image_copy(p.image, target) if p.is_padded else 0.0
    yield Candidate(PackPanel(pack=False), before + waiting)
    if is_shared_out:
        packing = _vector_copy(p.panel, target).cycles + PIECE_CYCLES * p.pieces
        yield Candidate(PackPanel(pack=True), packing * p.panels)


def _vector_copy(nbytes: int, target: Target) -> Demand:
    """Returns the demand of a copy of *nbytes* between places in the first level."""
    vectors = nbytes * 8 / target.isa.vector_bits
    return Demand(arithmetic=0.0, loads=load_cycles(vectors, target), stores=vectors)


def _image_copy(nbytes: int, target: Target) -> float:
    """Returns the cycles of a copy of an image of *nbytes*, which is written to the nearest level that has room for it."""
    copy = _vector_copy(nbytes, target)
    if nbytes <= target.caches.l2:
        return replace(copy, l2=l2_cycles(WRITTEN_TIMES * nbytes, target)).cycles
    reading = l3_cycles if nbytes < target.caches.l3 / 2 else memory_cycles
    return replace(copy, far=reading(WRITTEN_TIMES * nbytes, target)).cycles
