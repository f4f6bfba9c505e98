"""Tiles of a contraction on a grid: the tile that a thread block computes from parts of its factors in shared memory."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import lru_cache
from math import prod

from weft.cost.plans.plan import Candidate, Decision
from weft.cost.rules.grid_time import LAUNCH_CYCLES, SHARED_BYTES, BlockWork, greatest, grid_cycles, traffic_cycles
from weft.targets import Grid, Target
from weft.targets.instructions import ASYNC_COPIES

SHAPES = ((8, 8, 1), (16, 8, 2), (8, 8, 2), (16, 8, 1), (4, 16, 1), (16, 4, 1), (4, 8, 1))
"""The shapes of a thread block: threads along rows and columns, and groups of them along columns; a warp is 4 by 8 threads."""

RESULTS = ((4, 4), (8, 8), (8, 4), (4, 8), (2, 2), (4, 2), (2, 4), (1, 4), (4, 1), (1, 1))
"""The register tile of a thread: rows and columns of results."""

DEPTHS = (16, 32, 8)
"""Candidate depths of the tile: iterations of the K loop between two fetches, the most usual first."""

RUN = 4
"""Candidate numbers of adjacent rows and columns of a thread, which it reads from shared memory as vectors."""

SHARING = ((1, 2), (1, 4), (1, 8), (2, 1), (4, 1), (8, 1), (16, 1), (2, 4), (4, 4), (8, 4), (8, 2))
"""Split-K: parts of the K loop for different blocks, whose sums another kernel adds, and for groups of a block's threads."""

COPIES = (3,)
"""Candidate stages of the software pipeline on targets with asynchronous copies; with two, a step needs a second barrier."""

AHEAD = 0.97
"""The least relative time of a pipelined tile, beside the same tile without a pipeline; measured: 0.93 to 0.98 on an H200."""

BUSY_THREADS = 1024
"""Threads per multiprocessor above which split-K is not tried: there are enough to hide latency."""

SMALL_TILES = 32
"""Blocks per multiprocessor above which only larger tiles are tried, since they fetch less."""

FETCH_INSTRUCTIONS, COPY_INSTRUCTIONS = 6.0, 2.0
"""Instructions of a thread per fetch: a load, a store and their addresses; and of an asynchronous copy."""

GUARDED_TIME = 6.0
"""The time of a tile whose last step is cut by the end of the sum, so that each term has a condition, beside one of whole steps:
of 32 rows and 650 terms, 84 us for 2600 columns where 14 were estimated, 145 us for 10000 and not 19 (H200, 2026-11-26)."""

FILLED_STEPS = (8, 16, 32, 64, 128)
"""The steps of which the terms of a sum are made a multiple, if they are of none of `DEPTHS`: for some depths, and some parts."""

WRITTEN_OUT = 1024
"""The largest number of unrolled multiply-adds; more do not fit the instruction cache."""

NEAR_STEPS = 8
"""Steps that threads fetch side by side where they write vectors across: a sector of memory, and all banks."""

UNROLLED_FETCHES = 32
"""The number of fetches of a thread from which their loop is not unrolled; fewer are all in flight at once."""

UNHIDDEN_CYCLES = 40.0
"""Cycles per term of a thread that reads both factors from global memory, with few other threads to hide the latency."""

SHARED_CYCLES, GLOBAL_CYCLES = 1.0, 8.0
"""The cost of reading an element from shared memory and from global memory, relative to a multiply-add."""

LEAST_BLOCKS = 64
"""The number of blocks below which some multiprocessors are idle."""

LONG_ENOUGH = 16
"""The extent above which an axis is as suitable for tiles as any longer one."""

BANKS = 32
"""The banks of shared memory, each a word wide."""

WORD = 32
"""The size in bits of elements that are fetched as vectors."""


@dataclass(frozen=True)
class SharedTile(Decision):
    """A block of *y* by *x* threads, each with *rows* by *columns* results, fetches *depth* steps at once; all 0: no tiles.

    With *unroll*, the driver's compiler is asked to write these steps out. A thread fetches *lanes* elements side by side.
    There are *across* such groups of threads, beside each other along the columns. A thread's results come in pieces of *run*
    rows by *run* columns side by side, the pieces of all threads in turns.

    The terms may be in *parts*, whose sums another kernel adds; *groups* of such threads share the steps that they fetch
    together, so that each takes *depth* of them, and add their sums in shared memory.

    With several *copies* of the parts, threads multiply those of one step while others are on their way. If it is *filled*, zeros
    are fetched for terms behind the last, up to whole steps of all parts, and with parts behind the last rows and columns, too.
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
    across: int = 1
    run: int = 1
    parts: int = 1
    groups: int = 1
    copies: int = 1
    filled: bool = False

    @property
    def threads(self) -> int:
        """The threads of a block."""
        return self.y * self.x * self.layers

    @property
    def layers(self) -> int:
        """The threads along z: groups beside each other, or of other steps."""
        return self.across * self.groups

    @property
    def steps(self) -> int:
        """The steps between two fetches."""
        return self.depth * self.groups

    @property
    def high(self) -> int:
        """The rows of a block's results."""
        return self.y * self.rows

    @property
    def wide(self) -> int:
        """The columns of a block's results."""
        return self.x * self.columns * self.across

    @property
    def row_parts(self) -> tuple[int, int, int]:
        """The rows of a tile by pieces of a thread, threads, and rows of a piece."""
        return self.rows // self.run, self.y, self.run

    @property
    def column_parts(self) -> tuple[int, int, int, int]:
        """The columns of a tile by pieces of a thread, groups of threads, threads, and columns of a piece."""
        return self.columns // self.run, self.across, self.x, self.run


NO_TILE = SharedTile(0, 0, 0, 0, 0)


@dataclass(frozen=True)
class PartExtent:
    """The extent of one dimension of a fetched part: *least*, plus an increment per further row, column and step of a tile."""

    least: int
    row: int
    column: int
    step: int

    @property
    def is_window(self) -> bool:
        """Whether the rows or columns of a tile are sliding windows into the dimension."""
        return self.least > 1 and self.row + self.column > 0

    def length(self, high: int, wide: int, steps: int) -> int:
        """Returns the extent of the part for a tile of *high* rows, *wide* columns and *steps*."""
        return self.least + self.row * (high - 1) + self.column * (wide - 1) + self.step * (steps - 1)


@dataclass(frozen=True)
class TiledProduct:
    """*batch* products with *rows* by *columns* results of *terms* terms each.

    *parts* has the dimensions of the fetched part of each factor, and the bytes of an element. *depth* is the extent of the
    reduced axis that is split into steps.
    """

    rows: int
    columns: int
    batch: int
    terms: int
    depth: int
    parts: tuple[tuple[tuple[PartExtent, ...], int], ...]

    def shared_bytes(self, high: int, wide: int, depth: int) -> int:
        """Returns the bytes of the parts for a tile of *high* rows, *wide* columns and *depth* steps, with their padding.

        Of an image that tiles do not divide, lowering keeps the parts of all steps.
        """
        found = 0
        is_whole = self.rows % high == 0 and self.columns % wide == 0
        for dimensions, size in self.parts:
            steps = depth if is_whole or not any(d.is_window for d in dimensions) else max(depth, self.depth)
            found += (prod([d.length(high, wide, steps) for d in dimensions]) + 2 * BANKS) * size
        return found

    def has_whole_vectors(self, tile: SharedTile) -> bool:
        """Tells whether the rows of some part, which are words, are whole vectors, in the tile as in the product."""
        if self.depth % (tile.parts * tile.steps):
            return False
        is_whole = self.rows % tile.high == 0 and self.columns % tile.wide == 0
        last = [dimensions[-1] for dimensions, size in self.parts if size * 8 == WORD]
        return any(self._has_vectors(d, tile) for d in last if is_whole or not d.is_window)

    def _has_vectors(self, d: PartExtent, tile: SharedTile) -> bool:
        wholes = [n for n, moves in ((self.rows, d.row), (self.columns, d.column)) if moves]
        return d.length(tile.high, tile.wide, tile.steps) % tile.lanes == 0 and all(n % tile.lanes == 0 for n in wholes)


def plain_product(rows: int, columns: int, batch: int, terms: int, size: int = 4) -> TiledProduct:
    """Returns products of matrices whose elements have *size* bytes."""
    step = PartExtent(1, 0, 0, 1)
    parts = (((PartExtent(1, 1, 0, 0), step), size), ((PartExtent(1, 0, 1, 0), step), size))
    return TiledProduct(rows, columns, batch, terms, terms, parts)


def shared_tile_plans(product: TiledProduct, target: Target) -> Iterator[Candidate[SharedTile]]:
    """Yields the tiles of a product, and the choice of none.

    The cycles are those of all lanes of the device together, at work or not.
    """
    yield from _plans(product, target)


@lru_cache(maxsize=256)
def _plans(product: TiledProduct, target: Target) -> tuple[Candidate[SharedTile], ...]:
    grid = target.grid
    work = float(product.rows * product.columns * product.batch * product.terms)
    if grid is None:
        return (Candidate(NO_TILE, work),)
    lanes = float(grid.lanes * grid.multiprocessors)
    found = [Candidate(NO_TILE, max(work * (1 + 2 * GLOBAL_CYCLES), product.terms * UNHIDDEN_CYCLES * lanes))]
    whole = [(tile, product) for tile in _tiles(product, target, grid)]
    for tile, made in [*whole, *_filled_tiles(product, target, grid)]:
        cycles = lanes * _cycles(tile, made, target, grid)
        steps = tile.depth * tile.rows * tile.columns
        for unroll in (True, False) if steps <= WRITTEN_OUT else (False, True):
            found.append(Candidate(replace(tile, unroll=unroll), cycles))
    return tuple(found)


def _tiles(product: TiledProduct, target: Target, grid: Grid) -> Iterator[SharedTile]:
    """Yields the tiles that fit a thread block."""
    lanes, most = target.access_lanes(WORD), _most_shared(target)
    for tile in _whole_tiles(product, lanes, grid):
        for shared in (tile, *_sharing(tile, product, grid)):
            for made in _ahead(shared, product, target):
                if made.threads <= grid.block and _shared_bytes(made, product) <= most:
                    vectors = replace(made, lanes=lanes)
                    yield vectors if product.has_whole_vectors(vectors) else made


def _filled_tiles(product: TiledProduct, target: Target, grid: Grid) -> Iterator[tuple[SharedTile, TiledProduct]]:
    """Yields tiles of sums that are filled up to whole steps, and the product that they make, where no usual steps are whole."""
    depth, dimensions = product.depth, [d for part, _ in product.parts for d in part]
    if depth < max(DEPTHS) or any(depth % n == 0 for n in DEPTHS) or any(d.least > 1 for d in dimensions):
        return
    for more in dict.fromkeys([-(-depth // n) * n for n in FILLED_STEPS]):
        made = replace(product, depth=more, terms=product.terms // depth * more)
        for tile in _tiles(made, target, grid):
            steps = tile.parts * tile.steps
            is_whole = tile.parts > 1 or (product.rows % tile.high == 0 and product.columns % tile.wide == 0)
            if is_whole and more == -(-depth // steps) * steps:
                yield replace(tile, lanes=1, filled=True), made


def _whole_tiles(product: TiledProduct, lanes: int, grid: Grid) -> Iterator[SharedTile]:
    """Yields the tiles without split-K."""
    for y, x, across in SHAPES:
        for rows, columns in RESULTS:
            run = RUN if lanes >= RUN and rows % RUN == columns % RUN == 0 else 1
            whole = SharedTile(y, x, rows, columns, DEPTHS[0], across=across, run=run)
            if not _is_of_size(whole, product, grid):
                continue
            for depth in DEPTHS:
                if depth == DEPTHS[0] or (depth <= product.terms and depth * rows * columns <= WRITTEN_OUT):
                    yield replace(whole, depth=depth)


def _is_of_size(tile: SharedTile, product: TiledProduct, grid: Grid) -> bool:
    """Tells whether a tile is a matrix, no more than twice as long as the product, and not much smaller than that asks for."""
    is_small = tile.rows * tile.columns < RUN * RUN and _blocks(tile, product) > SMALL_TILES * grid.multiprocessors
    fits = tile.high < 2 * max(product.rows, SHAPES[0][0]) and tile.wide < 2 * max(product.columns, SHAPES[0][1])
    return fits and not is_small and min(tile.high, tile.wide) > 1


def _sharing(tile: SharedTile, product: TiledProduct, grid: Grid) -> Iterator[SharedTile]:
    """Yields the split-K variants of a tile with few threads: across blocks, or across groups of a block's threads."""
    busy = _blocks(tile, product) * tile.threads
    is_even = product.rows % tile.high == 0 or (tile.rows == tile.run and product.rows % tile.run == 0)
    most = max(groups for _, groups in SHARING) if tile.across == 1 and is_even else 1
    for parts, groups in SHARING:
        fits = product.depth % (parts * groups * tile.depth) == 0 and groups <= most
        if fits and busy * parts * groups <= BUSY_THREADS * grid.multiprocessors:
            yield replace(tile, parts=parts, groups=groups)


def _ahead(tile: SharedTile, product: TiledProduct, target: Target) -> Iterator[SharedTile]:
    """Yields a tile and its pipelined variants: of whole rows, by threads with many results that copy the same steps."""
    yield tile
    is_window = any(d.is_window for dimensions, _ in product.parts for d in dimensions)
    if not target.has(ASYNC_COPIES) or product.rows % tile.high or max(tile.groups, RUN // tile.run) > 1 or is_window:
        return
    steps = product.depth / (tile.parts * tile.depth)
    yield from [replace(tile, copies=copies) for copies in COPIES if steps.is_integer() and steps > copies]


def _blocks(tile: SharedTile, product: TiledProduct) -> int:
    return -(-product.rows // tile.high) * -(-product.columns // tile.wide) * product.batch * tile.parts


def _most_shared(target: Target) -> int:
    shared = target.scope("shared")
    return shared.bytes if shared is not None and shared.bytes is not None else 0


def _shared_bytes(tile: SharedTile, product: TiledProduct) -> int:
    """Returns the shared memory of a block: parts of the factors, and partial sums of groups."""
    sums = tile.groups * tile.high * (tile.wide + BANKS) * (WORD // 8) if tile.groups > 1 else 0
    return product.shared_bytes(tile.high, tile.wide, tile.steps) * tile.copies + sums


def _cycles(tile: SharedTile, product: TiledProduct, target: Target, grid: Grid) -> float:
    """Returns the cycles until all blocks are done, and until their sums are added."""
    own = _cycles_of(tile, product, target, grid)
    return own if tile.copies == 1 else max(own, AHEAD * _cycles_of(replace(tile, copies=1), product, target, grid))


def _cycles_of(tile: SharedTile, product: TiledProduct, target: Target, grid: Grid) -> float:
    blocks = _blocks(tile, product)
    results = product.rows * product.columns * product.batch
    size = max([size for _, size in product.parts])
    cycles = grid_cycles(blocks, _block_work(tile, product, grid), grid)
    if product.depth > tile.steps and product.depth % tile.steps:
        cycles *= GUARDED_TIME
    least = (product.rows + product.columns) * product.terms * product.batch * size
    cycles = greatest(cycles, traffic_cycles(least, target))
    if tile.parts > 1:
        cycles += LAUNCH_CYCLES + traffic_cycles(results * (tile.parts + 1) * (WORD // 8), target)
    return cycles


def _block_work(tile: SharedTile, product: TiledProduct, grid: Grid) -> BlockWork:
    """Returns the work of a block for its tile of the results."""
    terms = -(-product.terms // tile.parts)
    warps = -(-tile.threads // grid.warp)
    own = terms / tile.groups  # terms that one thread multiplies
    reads = (tile.rows + tile.columns) / tile.run
    fetched = (tile.high + tile.wide) * terms
    size = max([size for _, size in product.parts])
    fetches = _fetch_instructions(tile, product, terms) / grid.warp
    sums = tile.high * tile.wide * tile.groups * 2 / grid.warp if tile.groups > 1 else 0.0
    per_step = tile.rows * tile.columns + reads
    vectors = 1 if tile.run == 1 else min(tile.run, max(2, tile.x * tile.run * (WORD // 8) / SHARED_BYTES))
    return BlockWork(
        tile.threads,
        _shared_bytes(tile, product),
        tile.rows * tile.columns + 2 * (tile.rows + tile.columns),
        warps * own * per_step + fetches + sums,
        warps * own * reads * vectors + fetched / grid.warp + sums,
        fetched * size,
        -(-terms // tile.steps),
        tile.depth * per_step * max(1.0, warps * grid.warp / grid.lanes),
        tile.copies - 1,
    )


def _fetch_instructions(tile: SharedTile, product: TiledProduct, terms: int) -> float:
    """Returns the instructions of all threads of a block for fetches.

    Asynchronous copies can transpose a part only element by element.
    """
    if tile.copies == 1:
        return (tile.high + tile.wide) * terms / tile.lanes * FETCH_INSTRUCTIONS
    across = [dimensions[-1].step > 0 for dimensions, _ in product.parts]
    found = [n / (1 if turned else tile.lanes) for n, turned in zip((tile.high, tile.wide), across, strict=True)]
    return sum(found) * terms * COPY_INSTRUCTIONS
