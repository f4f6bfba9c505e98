"""Reductions over sliding windows (depthwise convolutions, pooling): tiles of neighbouring results, bound by loads."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import product
from math import prod

from weft.cost.demand import Demand, fma_cycles, load_cycles
from weft.cost.plans.plan import Candidate, Decision
from weft.targets import Target

MOST_STATEMENTS = 288
"""The largest number of (tap, result) pairs for which a tile is unrolled in full; beyond, only the window's last axis is."""

MOST_COPIES = 1300
"""The most such combinations with a copy of the tile for each of the places where borders are met."""

MOST_WINDOW_TAPS = 128
"""Windows of more elements are not worth a rule of their own: their reduction is long enough to be a contraction's."""

LONGEST_WINDOW_STRIDE = 4
"""Elements from one window to the next along vectors; beyond, elements are gathered one by one."""

MIDDLE = 2
"""How many times as many tiles an axis must have as lie at its ends, for those between to get code of their own."""

UNALIGNED = 1.5
"""The loads that one counts for that crosses from one cache line into the next, as every other one does along a row."""


@dataclass(frozen=True)
class WindowTile(Decision):
    """The sizes of a tile, as pairs of an axis' position and the results along it; axes that are not listed have one."""

    question = "the tile of a window"
    sizes: tuple[tuple[int, int], ...]


@dataclass(frozen=True)
class Borders(Decision):
    """Whether the padded copy of the input is inlined, so that each load is known to be padding or not when compiling."""

    question = "the borders of a window"
    inline: bool


@dataclass(frozen=True)
class WriteOut(Decision):
    """Whether all taps of a window are unrolled, or those of its last axis alone."""

    question = "the taps that are unrolled"
    all_taps: bool


@dataclass(frozen=True)
class Slide:
    """An axis of the result that a window slides along: its position, its extent, and the window's taps, stride and dilation."""

    position: int
    extent: int
    taps: int
    stride: int
    dilation: int
    is_innermost: bool

    def ends(self, size: int) -> int:
        """Returns how many tiles of *size* results reach over the ends of the input, if there are as many results as elements."""
        beyond = (self.taps - 1) * self.dilation
        return 2 * -(-beyond // (2 * size * self.stride))

    def touched(self, count: int) -> int:
        """Returns how many positions of the input the windows of *count* adjacent results access."""
        taps = range(0, self.taps * self.dilation, self.dilation)
        return len({n * self.stride + t for n in range(count) for t in taps})


@dataclass(frozen=True)
class WindowProblem:
    """The sizes of a reduction over windows.

    *last* is the position and the extent of the vectorised axis, *taps* are the elements of a whole window, *columns* those of
    its last axis. *slides* are all axes that the window slides along. *weighted* tells that each tap is multiplied by a weight.
    """

    last: tuple[int, int]
    lanes: int
    slides: tuple[Slide, ...]
    taps: int
    columns: int
    weighted: bool

    @property
    def along(self) -> Slide | None:
        """The slide along vectors, if there is one."""
        return next((x for x in self.slides if x.position == self.last[0]), None)

    @property
    def tiled(self) -> tuple[Slide, ...]:
        """The last two axes beside the vectorised one that the window slides along: tiles may have several results of these."""
        return tuple([x for x in self.slides if x.position != self.last[0]][-2:])


def window_tile_plans(p: WindowProblem, target: Target) -> Iterator[Candidate[WindowTile]]:
    """Yields the tiles that leave half of the registers for loaded elements, with the cycles of the whole result."""
    position, extent = p.last
    width = min(extent, p.lanes)
    room = target.isa.vector_registers // 2 - 1
    choices = [_counts(x.extent, room) for x in p.tiled]
    vectors = _counts(-(-extent // p.lanes), min(room, 8)) if p.along is not None else [1]
    found = False
    for *counts, v in product(*choices, vectors):
        if v * prod(counts) > room:
            continue
        found = True
        sizes = (*zip([x.position for x in p.tiled], counts, strict=True), (position, v * width))
        yield Candidate(WindowTile(sizes), _tile_cycles(p, counts, v, target) * _tiles(p, counts, v * width))
    if not found:
        yield Candidate(WindowTile(((position, width),)), 0.0)


def _counts(size: int, most: int) -> list[int]:
    """Returns the tile sizes worth trying along an axis: those that cut it into pieces as even as can be."""
    return [n for n in range(1, min(size, most) + 1) if -(-size // -(-size // n)) == n]


def _tiles(p: WindowProblem, counts: Sequence[int], width: int) -> int:
    return -(-p.last[1] // width) * prod([-(-x.extent // n) for x, n in zip(p.tiled, counts, strict=True)])


def _tile_cycles(p: WindowProblem, counts: Sequence[int], vectors: int, target: Target) -> float:
    """Returns the cycles of one tile: its taps, and a store for each sum."""
    sums = float(vectors)
    loads = vectors if p.along is None else vectors * p.along.taps * UNALIGNED * p.along.stride
    for x, n in zip(p.tiled, counts, strict=True):
        sums *= n
        loads *= x.touched(n)
    tile = Demand(
        arithmetic=fma_cycles(p.taps * sums, target),
        loads=load_cycles(loads + (p.taps if p.weighted else 0), target),
        chain=p.taps * target.core.fma_latency,
    )
    return tile.cycles + sums


def border_plans(p: WindowProblem, tile: WindowTile, target: Target) -> Iterator[Candidate[Borders]]:
    """Yields both ways to treat padding; the cycles are in units of a copy of the input.

    Inlining costs nothing where the tiles of each axis are cut into those at its ends and many others, with code for each. Along
    the vectorised axis borders lie inside of vectors, which needs masks; the loop over its taps is not unrolled.
    """
    decided = _are_borders_decided(p, dict(tile.sizes), target)
    yield Candidate(Borders(decided), 0.0 if decided else 1.0)
    yield Candidate(Borders(not decided), 1.0 if decided else 2.0)


def _are_borders_decided(p: WindowProblem, sizes: dict[int, int], target: Target) -> bool:
    along = p.along
    if along is not None and not target.isa.masked_memory:
        return False
    whole = p.taps * prod([sizes.get(x.position, 1) for x in p.slides if x is not along])
    if along is not None:
        whole = whole // along.taps * -(-sizes[along.position] // p.lanes)
    written_out = along is not None or whole <= MOST_STATEMENTS
    copies = 1
    for x in p.slides:
        size = sizes.get(x.position, 1)
        tiles, ends = -(-x.extent // size), x.ends(size)
        single = tiles <= ends and (written_out or x.is_innermost)  # each a copy, without a loop of taps
        if x is not along and not single and tiles < ends * MIDDLE:
            return False
        copies *= min(tiles, ends + 1)
    return copies * (whole if written_out else whole // (p.taps // p.columns)) <= MOST_COPIES


def write_out_plans(statements: int, target: Target) -> Iterator[Candidate[WriteOut]]:
    """Yields the choice to unroll all taps, or not, of a tile that then has *statements*; its cost is their number."""
    del target
    yield Candidate(WriteOut(all_taps=statements <= MOST_STATEMENTS), float(min(statements, MOST_STATEMENTS)))
    if statements <= MOST_STATEMENTS:
        yield Candidate(WriteOut(all_taps=False), float(MOST_STATEMENTS))
