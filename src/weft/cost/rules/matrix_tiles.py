"""The tiles of a product by matrix registers (AMX), by how long their products and loads take."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Final

from weft.cost.demand import fma_cycles
from weft.cost.plans.plan import Candidate, Decision
from weft.cost.rules.contractions.dot_product import dot_plans
from weft.support.dtypes import DType
from weft.targets import Target
from weft.targets.instructions import (
    GROUP_BYTES,
    GROUPS,
    MOST_ROWS,
    ROW_BYTES,
    SUM_TILES,
    TILE_LANES,
    TileOperation,
    group_of,
    intrinsics_of,
)

PRODUCT_CYCLES: Final = 1.0
"""Cycles for each row of a product of tiles. On an Emerald Rapids virtual machine, 2026-11-24, 2 x 2 products of bf16 in
registers ran at 3853 x 10^9 operations a second, 16 cycles a product, of bytes at 7762 (`benchmarks/peak.c`)."""

LOAD_CYCLES: Final = 8.0
"""Cycles of a load of a tile from the first level of cache: two rows of 64 bytes in each."""

FAR_LOAD_CYCLES: Final = 36.0
"""Cycles of a load of a tile from the second level. Convolutions of bytes on that machine, 2026-11-26: of 14 x 14 places and 256
channels, with 2 x 2 tiles at once in 141 cycles for each step, with 4 x 1 in 114, of 7 x 7 and 512 in 135 and 91. Products take
56 and 28 of them, and loads what is left: they hardly overlap."""

FAR_PART_CYCLES: Final = 20.0
"""Cycles of such a load of a part of numbers, which has several products to hide behind. With 2 x 2 tiles of a product of
128 x 768 x 768, of three parts each, a step of 24 products and 14 loads took 644 cycles, of tiles of 14 rows of a convolution 575
(that machine, 2026-12-01)."""

L1_SHARE: Final = 0.5
"""The part of the first level of cache that a factor may fill to be read from there in each step."""

STORE_CYCLES: Final = 16.0
"""Cycles of storing a tile: a row in each."""

BLOCK_SHARE: Final = 0.25
"""The part of the second level of cache that a block of rows may fill, beside panels and results. On that machine products of
bytes, 1024 cubed, ran at 1844 x 10^9 operations a second with all rows in turn, 1 MiB, and at 2278 in blocks of a half."""

FEWEST_BLOCK_ROWS: Final = 128
"""Rows of a block below which multiplying them takes no longer than reading a panel for them from the third level of cache."""

COPY_CYCLES: Final = 4.0
"""Cycles of copying 64 bytes of a factor from and to the second level of cache: counted, not measured."""

PAIRED: Final = 2
"""Tiles side by side whose rows are fetched together where a panel has more: the second level of cache has pairs of lines. With
one such tile at once, convolutions of 512 channels and 7 x 7 places took 1.25 times as long on that machine."""

SHORT_PRODUCT: Final = 4
"""Rows that a product takes as long as at least."""


@dataclass(frozen=True)
class MatrixTile(Decision):
    """The tiles of a product: tiles of *rows*, *row_tiles* x *columns* panels of the right factor of them at once.

    Without *rows* the product is computed in vectors. Blocks of *row_block* times as many rows, if not 0, are multiplied by all
    panels before the next. Where all rows are held at once, those of so many *lines* may be, which share the right factor, and
    in the end of as many as are left. Of panels wider than a tile, *wide* tiles are held at once; all where it is 0.
    """

    question = "the tiles of a product in matrix registers"
    rows: int = 0
    row_tiles: int = 1
    columns: int = 1
    row_block: int = 0
    lines: int = 1
    wide: int = 0


@dataclass(frozen=True)
class MatrixTileProblem:
    """A product of elements of the types *a* and *b*, summed in *sums*.

    It has *rows*, *columns* panels of *width* sums, and a reduction over *groups* of terms, the innermost axis
    of which has *inner* of them, and *others* results for each of a row and a column, those of *lines* beside one another of
    the same right factor. Rows of the left factor are *left_stride* bytes apart, 0 where an index computes with the row. So many
    columns of the right factor lie side by side in a *panel*, all of a width if it is 0. With *open_rows* there are about so many
    rows, whose number a call tells. Of factors in *parts* so many *pairs* are multiplied, which *groups* counts each: the others
    of a number's parts lie beside it.
    """

    a: DType
    b: DType
    sums: DType
    rows: int
    columns: int
    width: int
    groups: int
    inner: int
    others: int
    left_stride: int = 0
    lines: int = 1
    panel: int = 0
    open_rows: bool = False
    parts: int = 1
    pairs: int = 1

    @property
    def row_bytes(self) -> int:
        """The bytes of a row of the left factor, all of its parts."""
        return self.groups * GROUP_BYTES * self.parts // self.pairs

    @property
    def kinds(self) -> tuple[DType, DType, DType]:
        """The types of the factors and of the sums."""
        return self.a, self.b, self.sums


def matrix_tile_plans(p: MatrixTileProblem, target: Target) -> Iterator[Candidate[MatrixTile]]:
    """Yields the tiles of the target's matrix registers for the product, and vectors, by cycles.

    Heights divide the rows, or rows of a matrix are filled up with zeros to whole tiles.
    """
    yield Candidate(MatrixTile(), _vector_cycles(p, target))
    if p.width % TILE_LANES or p.inner % GROUPS:
        return
    known = {i.name for i in intrinsics_of(target)}
    for rows in [r for r in range(2, MOST_ROWS + 1) if TileOperation("multiply", r, p.sums, p.a, p.b).name in known]:
        if p.rows % rows == 0 and not p.open_rows:
            for tile in _arrangements(p, rows):
                made = replace(tile, row_block=_row_block(p, rows * tile.row_tiles, target))
                yield Candidate(made, _cycles(p, made, target))
        elif rows == MOST_ROWS and p.left_stride and (p.open_rows or p.rows > rows):
            yield from _filled_up(p, target)


def _filled_up(p: MatrixTileProblem, target: Target) -> Iterator[Candidate[MatrixTile]]:
    """Yields tiles of all rows of a register, for a left factor that is copied with zeros behind its rows.

    More rows are left than are held at once: the guard of the last of them is then that of a loop.
    """
    copied = p.rows * p.row_bytes / ROW_BYTES * COPY_CYCLES
    for row_tiles in [r for r in range(1, len(SUM_TILES) + 1) if p.open_rows or MOST_ROWS * r < p.rows]:
        height = MOST_ROWS * row_tiles
        whole = replace(p, rows=-(-p.rows // height) * height)
        for tile in [t for t in _arrangements(whole, MOST_ROWS) if t.row_tiles == row_tiles and t.lines == 1]:
            made = replace(tile, row_block=_row_block(whole, height, target))
            yield Candidate(made, _cycles(whole, made, target) + copied)


def _vector_cycles(p: MatrixTileProblem, target: Target) -> float:
    """Returns the cycles in vectors, by the fastest dot product there is."""
    vectors = p.others * p.rows * p.columns * -(-p.width // target.lanes(p.sums.bits)) * p.groups
    return min([fma_cycles(vectors * c.cycles, target) for c in dot_plans(p.kinds, p.width, group_of(p.a), target)])


def _arrangements(p: MatrixTileProblem, rows: int) -> Iterator[MatrixTile]:
    """Yields how many tiles of *rows*, panels, and parts of a panel, whole divisors of all, and lines are held at once."""
    most, row_tiles, parts = len(SUM_TILES), p.rows // rows, p.width // TILE_LANES
    for wide in _divisors(parts, most):
        for r in _divisors(row_tiles, most // wide):
            for lines in range(1, min(p.lines, most // wide // r) + 1) if r == row_tiles else (1,):
                for c in _divisors(p.columns, most // wide // r // lines) if wide == parts else (1,):
                    yield MatrixTile(rows, r, c, lines=lines, wide=0 if wide == parts else wide)


def _divisors(count: int, most: int) -> Iterator[int]:
    return (n for n in range(1, most + 1) if count % n == 0)


def _row_block(p: MatrixTileProblem, rows: int, target: Target) -> int:
    """Returns the blocks of *rows* of the left factor that stay in the second level of cache; 0 where all do, or it is none."""
    count, each = p.rows // rows, rows * p.row_bytes
    again = p.pairs // p.parts  # how often what is read is multiplied
    most = max(int(BLOCK_SHARE * again * target.caches.l2) // each, FEWEST_BLOCK_ROWS // again // rows, 1)
    if p.open_rows or not p.left_stride or count <= most:
        return 0
    return next(b for b in range(most, 0, -1) if count % b == 0)


def _cycles(p: MatrixTileProblem, tile: MatrixTile, target: Target) -> float:
    """Returns the cycles of all products in tiles, those of the lines that are left included."""
    each = tile.wide or p.width // TILE_LANES
    columns = p.columns // tile.columns * (p.width // TILE_LANES // each)
    whole, rest = divmod(p.lines, tile.lines)
    rows = p.others // p.lines * (p.rows // tile.rows // tile.row_tiles) * columns
    held = [(tile.row_tiles * tile.lines, whole), (tile.row_tiles * rest, 1 if rest else 0)]
    return sum([rows * n * _nest_cycles(p, tile, (tall, tile.columns * each), target) for tall, n in held if n])


def _nest_cycles(p: MatrixTileProblem, tile: MatrixTile, held: tuple[int, int], target: Target) -> float:
    """Returns the cycles of all steps of the reduction for so many tiles *held*, down and across, and of storing them.

    Windows of an image meet in most of their elements, which are in the first level of cache.
    """
    tall, wide = held
    near, depth = L1_SHARE * target.caches.l1, p.row_bytes
    far = FAR_PART_CYCLES if p.pairs > 1 else FAR_LOAD_CYCLES
    fetched = max(wide, PAIRED) if tile.wide and p.panel != TILE_LANES else wide
    right = fetched * p.parts * (LOAD_CYCLES if fetched * TILE_LANES * depth <= near else far)
    is_near = p.left_stride == 0 or tall * tile.rows * depth <= near
    again = max(p.pairs - 2 * p.parts + 1, 0)  # loads of a left part for another right one
    loads = p.parts * (LOAD_CYCLES if is_near else far) + again * LOAD_CYCLES
    left = tall * tile.rows / MOST_ROWS * loads
    products = p.pairs * tall * wide * max(tile.rows, SHORT_PRODUCT) * PRODUCT_CYCLES
    return (products + left + right) * p.groups / p.pairs / GROUPS + tall * wide * 2 * STORE_CYCLES
