"""Software prefetch of the B operand of a contraction, where no hardware prefetcher does it, and of an image's next rows."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from weft.cost.demand import fma_cycles, l3_cycles, load_cycles
from weft.cost.plans.plan import Candidate, Decision
from weft.cost.rules.contractions.contraction import NEAR_ROWS, ROWS_AHEAD, shares_panels
from weft.targets import Target


@dataclass(frozen=True)
class FusePanels(Decision):
    """Whether the loops that go through panels of B become one, so that each iteration knows the next panel."""

    question = "the loops over panels"
    fuse: bool


@dataclass(frozen=True)
class Prefetch(Decision):
    """The prefetches of B: of the next panel, a part in each tile, and of the row *distance* steps ahead (0 for none)."""

    question = "the prefetch of the B operand"
    panels: bool
    distance: int


@dataclass(frozen=True)
class PrefetchSteps(Decision):
    """Whether each step over taps or blocks of channels prefetches the image for the next one."""

    question = "the prefetch of the image"
    prefetch: bool


@dataclass(frozen=True)
class StreamProblem:
    """A B operand of *nbytes* that is read in rows of *row* elements, *width* elements of each in a tile.

    *tiles* use each panel of *panel* bytes and *depth* rows, None where that is not known, one after another, and each of its
    elements *uses* times in a tile. *has_panels* tells whether any loop goes from panel to panel.
    """

    nbytes: int
    row: int
    element_bytes: int
    width: int
    uses: int
    has_panels: bool
    tiles: int
    depth: int | None
    panel: int


def fuse_panel_plans(p: StreamProblem, target: Target) -> Iterator[Candidate[FusePanels]]:
    """Yields both choices: loops are fused where the next panel is prefetched; the cycles are those of waiting for a panel."""
    pays = _is_far(p, target) and _shares_panels(p, target)
    waiting = l3_cycles(p.panel, target)
    yield Candidate(FusePanels(pays), 0.0)
    yield Candidate(FusePanels(not pays), waiting)


def prefetch_plans(p: StreamProblem, target: Target) -> Iterator[Candidate[Prefetch]]:
    """Yields the prefetches of a stream: none where the nearest cache holds it or the machine foresees it."""
    ahead = target.core.read_ahead
    panels = p.has_panels and _shares_panels(p, target)
    foreseen = p.uses < target.core.read_ahead_uses
    near = ahead // 2 if panels else ahead  # a panel is nearer when its turn comes
    distance = max(1, near // (p.width * p.element_bytes))
    if p.row > p.width:  # a row is another line, and those of other columns are not what comes behind the last one
        distance = min(distance, ROWS_AHEAD)
    if not _is_in_order(p, target):
        foreseen = p.depth is not None and 2 * distance >= p.depth
    best = Prefetch(panels, 0 if foreseen else distance) if _is_far(p, target) else Prefetch(panels=False, distance=0)
    yield Candidate(best, 0.0)
    waiting = l3_cycles(p.nbytes, target)
    others = [Prefetch(panels=False, distance=0), Prefetch(panels=False, distance=distance)]
    others += [Prefetch(panels=True, distance=distance)] if p.has_panels else []
    for other in others:
        if other != best:
            yield Candidate(other, waiting)


def _is_far(p: StreamProblem, target: Target) -> bool:
    """Tells whether the machine needs prefetches at all, and the nearest cache does not hold the operand."""
    return target.core.read_ahead > 0 and p.nbytes > target.caches.l1


def _is_in_order(p: StreamProblem, target: Target) -> bool:
    """Tells whether pieces of rows follow each other so closely that they are one stream."""
    return p.row <= p.width or p.row * p.element_bytes <= NEAR_ROWS * target.caches.line


def _shares_panels(p: StreamProblem, target: Target) -> bool:
    """Tells whether all tiles that use a panel prefetch the next one together."""
    if p.nbytes <= target.caches.l2 or not p.has_panels or not _is_in_order(p, target):
        return False
    return shares_panels(p.tiles, p.width, p.panel, target)


MOST_STREAMS = 8
"""The most streams into which a reduction that reads a matrix from memory is split. On a core of Emerald Rapids a token of a
decoder, which reads 494 MB of panels of 64 columns, took 32.1 ms with one stream, 27.2 with 4 or 8, and 27.6 with 16 (2026-11-27,
the least of 80; medians beside busy neighbours 38.2, 34.5, 32.1 and 32.2)."""

WAYS_PART = 2 / 3
"""The part of a cache set's ways that the lines of all streams may take, whose addresses share it."""

STREAM_PAGES = 2
"""The least pages of each stream: prefetchers start anew in each."""


def streams_of(steps: int, step_bytes: int, nbytes: int, target: Target) -> int:
    """Returns the number of streams for a reduction of *steps* that reads *step_bytes* in each, of a buffer of *nbytes*.

    One that a cache holds stays one stream.
    """
    caches = target.caches
    if nbytes <= caches.l2:
        return 1
    most = min(MOST_STREAMS, int(WAYS_PART * (caches.l1 // caches.set_period)))
    fitting = [
        n for n in range(most, 1, -1) if steps % n == 0 and steps // n * step_bytes >= STREAM_PAGES * caches.page
    ]
    return fitting[0] if fitting else 1


@dataclass(frozen=True)
class ImageProblem:
    """An image that a step walks over: the bytes that all steps touch, and those to the next step's row or plane.

    A tile reads *places* elements of it for each step of its innermost loop, and has *sums* vectors of sums.
    """

    touched: int
    onward: int
    places: int
    sums: int


def prefetch_step_plans(p: ImageProblem, target: Target) -> Iterator[Candidate[PrefetchSteps]]:
    """Yields both choices; the cycles are those of the ports that loads and multiply-adds of a step share.

    The next step's rows are prefetched where one panel's image does not stay in the second-level cache until the next panel's
    turn, and where the multiply-adds leave the time to issue as many prefetches as there are places.
    """
    loads = load_cycles(2 * p.places + p.sums // p.places, target)
    pays = (
        target.core.read_ahead > 0
        and p.onward >= target.caches.line
        and p.touched > target.caches.l2
        and loads <= fma_cycles(p.sums, target)
    )
    yield Candidate(PrefetchSteps(pays), loads - load_cycles(p.places, target))
    yield Candidate(PrefetchSteps(not pays), loads)
