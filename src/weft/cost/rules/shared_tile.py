"""Tiles of a contraction on a grid: what a block of threads computes, from parts of its factors in the memory that they share."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from math import prod

from weft.cost.plans.plan import Candidate, Decision
from weft.cost.rules.thread_block import VECTOR_PART
from weft.targets import Target

SHAPES = ((8, 8), (16, 16), (8, 16), (16, 8), (4, 16), (16, 4), (1, 1))
"""Threads of a block along rows and columns; one thread is what a device takes that is a processor."""

REGISTERS = (4, 2, 8, 1, 16)
"""Rows, and columns, of results that one thread keeps in registers."""

MOST_RESULTS = 32, 128
"""Results that a thread of many keeps in registers at most, and a thread that has a block to itself."""

MOST_ALONG = 8
"""Rows, or columns, of results that a thread of many keeps at most."""

DEPTHS = (16, 8, 32)
"""Steps of the reduction between two fetches that are tried, the most usual first."""

BARRIER_CYCLES = 20.0
"""What the two barriers of such a step take a thread."""

CROWDED = 0.2
"""The part by which a block is slower that takes all of the shared memory: no other block hides its loads."""

SHARED_CYCLES, GLOBAL_CYCLES = 1.0, 8.0
"""What reading an element takes a thread, beside a multiply-add: of shared memory, and of the device's."""

LONG_ENOUGH = 16
"""Elements of an axis beyond which it is as good for tiles as a longer one."""

BANKS = 32
"""Words of shared memory that the threads of a warp reach at once, if they are in different banks."""

WORD = 32
"""The bits of the elements that are fetched in vectors."""

LEAST_BLOCKS = 64
"""Blocks below which a device's multiprocessors are not all at work."""


@dataclass(frozen=True)
class SharedTile(Decision):
    """A block of *y* by *x* threads, each with *rows* by *columns* results, fetches *depth* steps at once; all 0: no tiles.

    With *unroll*, the driver's compiler is asked to write these steps out. A thread fetches *lanes* elements side by side.
    """

    question = "the tile of a block of threads"
    of_grids = True
    y: int
    x: int
    rows: int
    columns: int
    depth: int
    unroll: bool = False
    lanes: int = 1


NO_TILE = SharedTile(0, 0, 0, 0, 0)


@dataclass(frozen=True)
class PartExtent:
    """How long a dimension of a fetched part is: *least*, and so much longer for each further row, column and step of a tile."""

    least: int
    row: int
    column: int
    step: int

    @property
    def is_window(self) -> bool:
        """Whether the rows or columns of a tile are windows into the dimension."""
        return self.least > 1 and self.row + self.column > 0

    def length(self, high: int, wide: int, steps: int) -> int:
        """Returns the extent for so many rows, columns and steps."""
        return self.least + self.row * (high - 1) + self.column * (wide - 1) + self.step * (steps - 1)


@dataclass(frozen=True)
class TiledProduct:
    """*batch* products of *rows* by *columns* results with so many *terms*; *parts* are what is fetched of each factor.

    Those are the dimensions of the parts, beside the bytes of an element. *depth* is the extent of the axis that is cut in steps.
    """

    rows: int
    columns: int
    batch: int
    terms: int
    depth: int
    parts: tuple[tuple[tuple[PartExtent, ...], int], ...]

    def shared_bytes(self, high: int, wide: int, depth: int) -> int:
        """Returns the bytes of the parts for a tile of so many rows, columns and steps, with their padding.

        Of an image that tiles do not divide, lowering keeps the parts of all steps.
        """
        found = 0
        is_whole = self.rows % high == 0 and self.columns % wide == 0
        for dimensions, size in self.parts:
            steps = depth if is_whole or not any(d.is_window for d in dimensions) else max(depth, self.depth)
            found += (prod([d.length(high, wide, steps) for d in dimensions]) + 2 * BANKS) * size
        return found

    def has_whole_vectors(self, tile: SharedTile) -> bool:
        """Tells whether a tile divides the product, and a part's rows of words are whole vectors."""
        high, wide = tile.y * tile.rows, tile.x * tile.columns
        if self.rows % high or self.columns % wide or self.depth % tile.depth:
            return False
        rows = [d[-1].length(high, wide, tile.depth) for d, size in self.parts if size * 8 == WORD]
        return any(n % tile.lanes == 0 for n in rows)


def plain_product(rows: int, columns: int, batch: int, terms: int, size: int = 4) -> TiledProduct:
    """Returns products of matrices whose elements have *size* bytes."""
    step = PartExtent(1, 0, 0, 1)
    parts = (((PartExtent(1, 1, 0, 0), step), size), ((PartExtent(1, 0, 1, 0), step), size))
    return TiledProduct(rows, columns, batch, terms, terms, parts)


def shared_tile_plans(product: TiledProduct, target: Target) -> Iterator[Candidate[SharedTile]]:
    """Yields the tiles of a product, and the choice of none.

    The cycles are those of all threads together, longer where there are too few blocks to keep the device at work.
    """
    work = float(product.rows * product.columns * product.batch * product.terms)
    yield Candidate(NO_TILE, work * (1 + 2 * GLOBAL_CYCLES))
    for y, x in SHAPES:
        for m in REGISTERS:
            for n in REGISTERS:
                for depth in DEPTHS:
                    made = _candidate(SharedTile(y, x, m, n, depth), product, target)
                    if made is not None:
                        yield from _variants(made, product, target)


def _variants(made: Candidate[SharedTile], product: TiledProduct, target: Target) -> Iterator[Candidate[SharedTile]]:
    """Yields a tile whose parts are fetched in vectors, where they are whole ones, and as it is; also with steps written out."""
    wide = target.access_lanes(32)
    for tile, cycles in ((replace(made.decision, lanes=wide), made.cycles * VECTOR_PART), (made.decision, made.cycles)):
        if tile.lanes == 1 or (wide > 1 and product.has_whole_vectors(tile)):
            yield Candidate(tile, cycles)
            yield Candidate(replace(tile, unroll=True), cycles)


def _has_results(tile: SharedTile) -> bool:
    """Tells whether a tile has several rows and columns, and no more results than registers."""
    alone = tile.y * tile.x == 1
    few = tile.rows * tile.columns <= MOST_RESULTS[alone] and (alone or max(tile.rows, tile.columns) <= MOST_ALONG)
    return few and min(tile.y * tile.rows, tile.x * tile.columns) > 1


def _candidate(tile: SharedTile, product: TiledProduct, target: Target) -> Candidate[SharedTile] | None:
    """Returns a tile with its cycles; None where a block has no room for it."""
    shared, grid = target.scope("shared"), target.grid
    most = shared.bytes if shared is not None and shared.bytes is not None else 0
    threads, high, wide = tile.y * tile.x, tile.y * tile.rows, tile.x * tile.columns
    if grid is None or threads > grid.block or not _has_results(tile):
        return None
    if tile.depth != DEPTHS[0] and tile.depth > product.terms:
        return None
    room = product.shared_bytes(high, wide, tile.depth)
    if room > most:
        return None
    blocks = -(-product.rows // high) * -(-product.columns // wide) * product.batch
    padded = float(blocks * high * wide * product.terms)
    reads = SHARED_CYCLES * (1 / tile.rows + 1 / tile.columns) + GLOBAL_CYCLES * (1 / high + 1 / wide)
    cycles = padded * (1 + reads) + blocks * threads * -(-product.terms // tile.depth) * BARRIER_CYCLES
    cycles *= (1 + CROWDED * room / most) * max(1.0, grid.warp / threads)
    return Candidate(tile, cycles * max(1.0, LEAST_BLOCKS / blocks) ** 0.5)
