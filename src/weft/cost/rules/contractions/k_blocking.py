"""K blocking, for contractions whose panel of B does not stay in the second-level cache, or whose A lies in many planes.

The blocks are kc and mc of Low, Igual, Smith and Quintana-Orti, "Analytical modeling is enough for high-performance BLIS" (2016),
section 4.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

from weft.cost.graph.memory import L2_SHARE, OTHERS_SHARE
from weft.cost.graph.packing import PANEL_VECTORS
from weft.cost.plans.plan import Candidate, Decision
from weft.cost.rules.contractions.contraction import NEAR_ROWS, TileProblem, tile_cycles, tile_plans
from weft.cost.rules.parallel import wanted_tasks
from weft.targets import Target

PANEL_SHARE = 0.35
"""The part of the second-level cache that a panel may fill in a block of the reduction: sums and rows of A follow."""

SUMS_SHARE = 0.125
"""The part that the sums of a block of rows may fill."""

MOST_COLUMN_VECTORS = 6
"""Vectors of the columns of a block beyond which its panels fill too much of the second level, and its sums of the first."""

FEWEST_ROWS = 64
"""Rows of a block below which multiplying them takes no longer than reading a panel for them."""


FEWEST_STEPS = 4
"""Steps of the reduction in a plane of A below which a tile has so little of each that partial sums cost more than misses."""

MOST_PLANES = 8
"""Planes of A that a tile reads in a block of the reduction: about as many streams as hardware prefetchers follow."""


@dataclass(frozen=True)
class DepthProblem:
    """The panel of B, in bytes for each of *depth* steps of the reduction, and the *rows* that use it.

    The reduction's axis number *axis* goes through *planes* of A, *apart* bytes from each other; A has *image* bytes in all, and
    the panel is used for *places*, of all images. Of the products, the part *inside* is not with padding. Tiles of all columns,
    which go through the whole reduction, are chosen for *tile*.
    """

    panel: int
    depth: int
    rows: int
    axis: int = 0
    planes: int = 1
    apart: int = 0
    image: int = 0
    places: int = 0
    inside: float = 1.0
    tile: TileProblem | None = None


@dataclass(frozen=True)
class KBlocks(Decision):
    """The number of blocks that the reduction is cut into, and which of its axes is cut."""

    question = "the blocks of the reduction"
    axis: int
    blocks: int


@dataclass(frozen=True)
class ColumnBlock(Decision):
    """The columns of panels that a block of rows is multiplied by before the next block of the reduction (BLIS's NC)."""

    question = "the columns of a block"
    columns: int


@dataclass(frozen=True)
class RowBlock(Decision):
    """The most rows of the result whose partial sums stay in cache between blocks of the reduction."""

    question = "the rows of a block"
    rows: int


def rows_of_tile(target: Target) -> int:
    """Returns how many rows a tile has that is as wide as a panel."""
    return target.isa.vector_registers // PANEL_VECTORS


def is_deep(p: DepthProblem, target: Target) -> bool:
    """Tells whether a panel of B leaves the cache between tiles of rows."""
    return p.rows > rows_of_tile(target) and p.panel * p.depth > L2_SHARE * target.caches.l2


def is_scattered(p: DepthProblem, target: Target) -> bool:
    """Tells whether a tile reads more planes of A than prefetchers follow, a few vectors of each, and A is not in the cache.

    The blocks of a 1 x 1 convolution's channels are such planes. Fewer are too many where no cache holds A, so that each miss
    waits for memory: on Zen 3, 128 channels of 147 x 147 places, in 16 planes, took 32 ms for 128 outputs, and take 12 in blocks;
    64 channels, in 8, take 6 either way (2026-11-30).
    """
    most = MOST_PLANES if p.image > OTHERS_SHARE * target.caches.l3 else 2 * MOST_PLANES
    many = p.planes > most and p.apart >= NEAR_ROWS * target.caches.line
    return many and p.image > L2_SHARE * target.caches.l2 and p.depth >= FEWEST_STEPS * p.planes


def k_block_plans(p: DepthProblem, sizes: list[int], target: Target) -> Iterator[Candidate[KBlocks]]:
    """Yields the cuts of a reduction over axes of *sizes*: as few blocks as let a panel stay, even ones if there are any.

    Where A lies in too many planes, it is cut into blocks of `MOST_PLANES`. The cycles are those of adding the partial sums of
    each block, in units of one block's.
    """
    least = _least_blocks(p, target)
    if is_scattered(p, target):
        axis, least = p.axis, max(least, -(-p.planes // MOST_PLANES))
    else:
        axis = next((n for n, size in enumerate(sizes) if size >= least), sizes.index(max(sizes)))
    least = min(least, sizes[axis])
    even = [n for n in range(least, min(sizes[axis], 2 * least) + 1) if sizes[axis] % n == 0]
    best = even[0] if even else least
    yield Candidate(KBlocks(axis, best), float(best))
    for n in dict.fromkeys([*even, 2 * best]):
        if best < n <= sizes[axis]:
            yield Candidate(KBlocks(axis, n), float(n))


def column_block_plans(p: TileProblem, usual: int, target: Target) -> Iterator[Candidate[ColumnBlock]]:
    """Yields the columns of a block: the *usual* number, and others whose tiles may leave less of a rest.

    The cycles are those of all columns in tiles of one size. With 16 registers the best tile of 7 rows has 4 by 3: of blocks of
    four columns one is left over, of six none.
    """
    vectors = -(-p.last // target.lanes(p.element_bytes * 8))
    others = [n for n in range(2, MOST_COLUMN_VECTORS // vectors + 1) if n != usual]
    for n in [usual, *others]:
        if n <= p.column:
            yield Candidate(ColumnBlock(n), _cycles_in_blocks(p, n, target))


def _cycles_in_blocks(p: TileProblem, columns: int, target: Target) -> float:
    """Returns the cycles of the best tile for blocks of so many *columns*, and for the columns that are left over."""
    block, (whole, few) = replace(p, column=columns), divmod(p.column, columns)
    rest = replace(p, column=few)
    return min(
        whole * t.cycles + (tile_cycles(rest, t.decision, target) if few else 0.0) for t in tile_plans(block, target)
    )


def k_blocked_cycles(p: DepthProblem, tile: TileProblem, target: Target) -> float:
    """Returns the cycles of all tiles of *p* whose panels stay in the second-level cache for a block of the reduction."""
    blocks = _least_blocks(p, target)
    block = replace(tile, depth=-(-tile.depth // blocks))
    usual = max(1, p.panel // (tile.last * tile.element_bytes))
    return blocks * min(c.cycles for c in column_block_plans(block, min(usual, tile.column), target))


def _least_blocks(p: DepthProblem, target: Target) -> int:
    """Returns the fewest blocks of the reduction in which a panel stays in the second-level cache."""
    return max(2, -(-p.panel * p.depth // int(PANEL_SHARE * target.caches.l2)))


def row_block_plans(panel: int, tasks: int, rows: int, target: Target) -> Iterator[Candidate[RowBlock]]:
    """Yields the rows of a block: as many as keep their sums in cache, but enough blocks for all cores.

    *tasks* are those that there are without cutting the *rows*. The cycles are those of reading panels, in units of one reading.
    """
    pieces = -(-wanted_tasks(target) // tasks)
    most = min(int(SUMS_SHARE * target.caches.l2) // panel, max(FEWEST_ROWS, -(-rows // pieces)))
    for n in dict.fromkeys([most, max(1, most // 2)]):
        yield Candidate(RowBlock(n), float(-(-rows // max(1, n))))
