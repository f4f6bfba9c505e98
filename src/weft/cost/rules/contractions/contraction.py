"""The size of register tiles, from the number of registers, the latency and the ports of the machine.

After Low, Igual, Smith and Quintana-Orti, "Analytical modeling is enough for high-performance BLIS" (2016), section 4: a tile
must have enough independent sums to hide the latency of multiply-adds, fit the registers, and need few loads for each of them.
The cycles of the *whole* grid of tiles are minimised, the smaller last ones of a row included.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from math import gcd

from weft.cost.demand import LOAD_PRESSURE, Demand, fma_cycles, l2_cycles, l3_cycles, load_cycles, memory_cycles
from weft.cost.graph.memory import L2_SHARE
from weft.cost.graph.packing import PANEL_VECTORS
from weft.cost.plans.plan import Candidate, Decision
from weft.targets import Target

SIDE_BY_SIDE = 4
"""Lines between rows of the left factor that are read as one stream; further apart each row is a stream of its own."""

CHAIN_SLACK = 1
"""Cycles by which a step takes longer than a multiply-add's latency: a sum's next operands are not always there at once. With 8
sums, which hide the latency just so, 15 matrices of 68 x 307 times 307 x 77 took 1.17 of the time with 12; counted, ResNet-18
takes 0.95 of the time before, MobileNet 0.99 (Zen 4 held to AVX2, 2026-11-28)."""

ROW_CYCLES = 4.0
"""The cycles that a line of a stream stalls a tile."""

SETS_SHARE = 0.7
"""The part of the first-level cache that rows in the same sets may fill."""

TILE_OVERHEAD = 12
"""Cycles that a tile costs beside its reduction, for each vector: it is started from zero, finished and stored."""

OPEN_ROWS = 8
"""Rows of a tile where it is not known how many there are: the last tile is written out for each number of them."""

LONGEST_RUN = 16
"""Vectors along the last axis of a tile that uses each element once: long sequential reads use memory bandwidth best."""

NEAR_ROWS = 8
"""Lines of the longest rows that follow each other so closely that memory goes on with the next one."""

RESTART_LINES = 2.5
"""Lines that the third level or memory could have sent where a tile reads only a piece of each row of the right factor: 16 cycles
of Emerald Rapids."""

LINES_LOST = 1, 5
"""Lines that a core could have read where a tile that uses each element once reads only a piece of a row, from the second level
and from beyond it: the rest of a line is read again, and the next line is not the one fetched ahead. Means of 259 rows of 48
elements in L2 took 0.60 of the time of pieces of 16 in whole rows, maxima of 91 rows of 118 in L3 0.55 in pieces of 112 (Zen 4
held to AVX2, 2026-11-28)."""

PANELS_SHARE = 0.75
"""The part of the second-level cache that two panels may fill."""

LONG_ROW = 4
"""Vectors of the longest row that is one panel."""

COLD_SHARE = 0.125
"""The part of the second-level cache that panels fill which are not there any more: a model that has weights of that size has
read others since. On Emerald Rapids a product of 9 tiles of Winograd's method by 524 kB of weights took 0.82 of the time in one
tile of 9 rows, which multiplies while it reads, of that in tiles of 5 and 4: the second finds in cache what the first waited
for."""

L1_SHARE = 0.5
"""The part of the first-level cache that a right factor may fill."""

NEAR_L2_SHARE = 0.25
"""The part of the second-level cache that it may fill where the result does not stay in that cache."""

RESULT_SHARE = 0.75
"""The part of the second-level cache that a result may fill and stay there."""

ROWS_AHEAD = 16
"""The most rows that prefetches run ahead in a matrix that is not in panels. 65 rows times 263 x 1296 took 0.95 of the time
without any with 4 or 8, 0.97 with 16, 1.03 with 32, 1.13 with 64; 4 matrices of 87 x 707 times 707 x 147 0.95 to 1.00 with up to
16, 0.99 with more (Zen 4 held to AVX2, 2026-11-28)."""

READ_AGAIN = 3.0
"""How many times as long lines take that evict one another between their prefetch and their use. 256 rows times 1024 x 4096, all
of whose rows share a set, take 18 cycles for each 64 bytes on AMD's Zen 3, and times 16 x 4096 15, in tiles of 6 rows by 16
columns, whose multiply-adds take 6 (2026-11-29)."""


@dataclass(frozen=True)
class Tile(Decision):
    """A tile of `rows` x `columns` pieces of `width` elements, for each of `outer_rows`."""

    question = "the register tile of a contraction"
    rows: int
    columns: int
    width: int
    outer_rows: int = 1

    def sums(self, lanes: int) -> int:
        """Returns how many vectors of *lanes* sums it has."""
        return self.rows * self.outer_rows * self.columns * -(-self.width // lanes)


@dataclass(frozen=True)
class TileProblem:
    """The loops that a tile is chosen for: the sizes of the two tiled axes and of the last, and the steps of the reduction.

    Where *open_row* the row's size is a guess, and a tile has few of them; so may that of the last axis be, by *open_last*, and
    the columns', by *open_column*. The *outer_row* is another axis of which a tile may hold several, with all of the row. The
    right factor has *right_bytes* in all, for whatever other axes it has, too, and none where nothing is multiplied; in the left
    one, rows are *left_stride* bytes apart, in the right one, those of two steps *right_stride*. Where rows are *shared* by both
    factors, each has a right factor of its own. A step for a vector of sums takes as long as *cycles* multiply-adds, and all of
    them *temporaries* registers; each vector of the right factor takes *conversions* operations after its load, each element of
    the left one *row_conversions*. The bytes loaded for it are so many parts of a vector of sums' bytes (*right_part*). It is an
    image, of which *windows* are read, or panels. Tiles read *between* bytes of it from one tile with a panel to the next, if
    other panels' turns come first.
    """

    row: int
    column: int
    last: int
    depth: int
    element_bytes: int
    open_row: bool = False
    open_last: bool = False
    open_column: bool = False
    outer_row: int = 1
    right_bytes: int = 0
    left_stride: int = 0
    right_stride: int = 0
    shared: bool = False
    cycles: float = 1.0
    temporaries: int = 1
    conversions: int = 0
    row_conversions: int = 0
    right_part: float = 1.0
    windows: bool = False
    between: int = 0

    @property
    def reuses(self) -> bool:
        """Tells whether elements of the right factor are used more than once."""
        return not self.shared and self.row * self.outer_row > 1


def tile_plans(problem: TileProblem, target: Target) -> Iterator[Candidate[Tile]]:
    """Yields the tiles that fit the registers; the width is all of the last axis where that is short."""
    for width in _widths(problem, target):
        for tile in _tiles_that_fit(problem, width, target):
            yield Candidate(tile, tile_cycles(problem, tile, target))


def best_tile_cycles(problem: TileProblem, target: Target) -> float:
    """Returns the cycles of the whole contraction in the best of its tiles."""
    return min(tile.cycles for tile in tile_plans(problem, target))


def tile_cycles(problem: TileProblem, tile: Tile, target: Target) -> float:
    """Returns the cycles of the whole contraction in tiles, the wait for the B operand's first use included.

    Where the length of the last axis is a guess, this is the mean over lengths that leave each number of vectors for the last
    tile: it is written out for each of them, but few sums leave the pipelines idle.
    """
    lanes = target.lanes(problem.element_bytes * 8)
    lengths = range(problem.last, max(problem.last - PANEL_VECTORS * lanes, 0), -lanes)
    sizes = [replace(problem, last=n) for n in lengths] if problem.open_last else [problem]
    waiting = _first_touch if problem.right_bytes else _torn_rows
    return sum(_grid_cost(p, tile, target) + waiting(p, tile, target) for p in sizes) / len(sizes)


@dataclass(frozen=True)
class Order(Decision):
    """The outer loop order: whole rows of the result one after another (*by_rows*), or panel of B after panel."""

    question = "the order of tiles"
    by_rows: bool


@dataclass(frozen=True)
class OrderProblem:
    """The footprints that the order of tiles depends on, in bytes: a row and the panels of B, the result and one image of it.

    *windows* are the bytes of B that windows access, where that is less than the panels.
    """

    row_bytes: int
    panels: int
    result: int
    image: int
    windows: int


def order_plans(p: OrderProblem, target: Target) -> Iterator[Candidate[Order]]:
    """Yields the orders of tiles: by rows where all panels of a B with long rows stay near together, else by panels.

    Near is the first-level cache, or the second-level one if the result would not stay there. Windows share much of the image
    that they read: going from plane to plane of it for each row costs more than writing the result in pieces, unless not even
    the part of the result that one image gives stays in the cache. The cycles are those of reading the panels again for a row,
    against reading as much as may stay near.
    """
    near = target.caches.l1 * L1_SHARE
    if p.result > target.caches.l2 * RESULT_SHARE:
        near = max(near, target.caches.l2 * NEAR_L2_SHARE)
    panels = min(p.panels, p.windows) if p.image > target.caches.l2 * RESULT_SHARE else p.panels
    if p.row_bytes > LONG_ROW * target.isa.vector_bits // 8:
        yield Candidate(Order(by_rows=True), l2_cycles(panels, target))
        yield Candidate(Order(by_rows=False), l2_cycles(near, target))
    else:  # a row is one panel
        yield Candidate(Order(by_rows=False), 0.0)


def _widths(p: TileProblem, target: Target) -> list[int]:
    """Returns the widths a tile may have: those that divide the last axis or, if none has several vectors, any others."""
    lanes = target.lanes(p.element_bytes * 8)
    if p.last <= lanes:
        return [p.last]
    most = PANEL_VECTORS if p.reuses and p.right_bytes else min(LONGEST_RUN, target.isa.vector_registers - 2)
    widths = list(dict.fromkeys([min(p.last, lanes * v) for v in range(most, 0, -1)]))
    even = [w for w in widths if p.last % w == 0]
    if p.open_last or not p.right_bytes:
        return widths
    return even if even and even[0] > lanes else widths


def _tiles_that_fit(p: TileProblem, width: int, target: Target) -> Iterator[Tile]:
    """Yields the tiles that leave registers for their operands, smaller ones first; at least the smallest of all.

    Where operands are converted, one more register holds what a conversion begins with; in a row whose last vector is not whole,
    one holds its mask.
    """
    vectors = -(-width // target.lanes(p.element_bytes * 8))
    free = target.isa.vector_registers - p.temporaries - (1 if p.conversions or p.row_conversions else 0)
    free -= int(_takes_mask(p, width, target))
    most = target.isa.vector_registers  # no axis is so long that more of it need be tried: each row takes a register
    rows = [(r, 1) for r in range(1, min(p.row, most) + 1) if not p.open_row or r <= OPEN_ROWS]
    rows += [(p.row, o) for o in range(2, min(p.outer_row, most) + 1)]
    yield Tile(1, 1, width)
    columns = (1, 2, 3, 4) if width == p.last else (1,)  # a part of a row of each of several panels is no stream
    for c in [c for c in columns if _may_cut(p, c) and vectors * c <= 6]:
        for r, o in rows:
            operands = c * vectors if r * o > 1 and not p.shared else 0  # operands used once take no register
            if r * o * c * vectors + operands > free:
                break
            yield Tile(r, c, width, o)


def _takes_mask(p: TileProblem, width: int, target: Target) -> bool:
    """Tells whether the last vector of a row takes a register for its mask, as one does that is no power of two."""
    isa, rest = target.isa, width % target.lanes(p.element_bytes * 8)
    return isa.masked_memory and not isa.mask_registers and rest.bit_count() > 1


def _may_cut(p: TileProblem, columns: int) -> bool:
    """Tells whether tiles may have *columns*: a known extent may leave a remainder for the last tile."""
    return p.column % columns == 0 if p.open_column else columns <= p.column


def _grid_cost(p: TileProblem, tile: Tile, target: Target) -> float:
    """Returns the cycles for the whole grid of tiles, smaller ones at the ends included."""
    lanes = target.lanes(p.element_bytes * 8)
    whole, narrow = divmod(p.last, tile.width)
    cost = whole * _strip_cost(p, tile, -(-tile.width // lanes), target)
    return cost + (_strip_cost(p, tile, -(-narrow // lanes), target) if narrow else 0.0)


def _strip_cost(p: TileProblem, tile: Tile, vectors: int, target: Target) -> float:
    """Returns the cycles for all tiles whose columns are *vectors* wide, one beside another along the columns and rows."""
    whole, few = divmod(p.column, tile.columns)
    cost = whole * _column_cost(p, tile, tile.columns * vectors, target)
    return cost + (_column_cost(p, tile, few * vectors, target) if few else 0.0)


def _column_cost(p: TileProblem, tile: Tile, vectors: int, target: Target) -> float:
    """Returns the cycles for all tiles that are *vectors* wide, one below another along the rows."""
    (full, rest), (many, few) = divmod(p.row, tile.rows), divmod(p.outer_row, tile.outer_rows)
    cost = many * full * _tile_cost(p, tile.rows * tile.outer_rows, vectors, target)
    if rest:
        cost += many * _tile_cost(p, rest, vectors, target)
    if few:
        cost += _tile_cost(p, tile.rows * few, vectors, target)
    return cost


def _first_touch(p: TileProblem, tile: Tile, target: Target) -> float:
    """Returns the cycles that the first tile with each panel waits for a right factor that is not in the second-level cache.

    An image was just computed, and is there if there is room for it.
    """
    if p.right_bytes <= target.caches.l2 * (1.0 if p.windows else COLD_SHARE):
        return 0.0
    reading = l3_cycles if p.right_bytes < target.caches.l3 / 2 else memory_cycles
    panels = tile.columns * (tile.rows if p.shared else 1)
    lanes = target.lanes(p.element_bytes * 8)
    vectors, sums = -(-tile.width // lanes), tile.sums(lanes)
    below = -(-p.row // tile.rows) * -(-p.outer_row // tile.outer_rows)
    is_prefetched = p.reuses and p.right_bytes > target.caches.l2  # a panel by the tiles before
    if is_prefetched and shares_panels(below, tile.width, panels * tile.width * p.element_bytes * p.depth, target):
        sums = p.row * p.outer_row * tile.columns * vectors  # those of all tiles, which ask for the next panel together
    waiting = max(0.0, reading(panels * vectors * target.isa.vector_bits / 8, target) - fma_cycles(sums, target))
    if tile.width < p.last and p.last * p.element_bytes > NEAR_ROWS * target.caches.line:
        waiting += reading(RESTART_LINES * target.caches.line, target) * panels
    tiles = -(-p.column // tile.columns) * -(-p.last // tile.width) * (-(-p.row // tile.rows) if p.shared else 1)
    return waiting * p.depth * tiles


def _torn_rows(p: TileProblem, tile: Tile, target: Target) -> float:
    """Returns the cycles lost where each element is used once, and tiles read rows in pieces: a stream stops after each.

    A last piece that is narrow loses less, in proportion.
    """
    pieces, rows = p.last / tile.width, p.row * p.outer_row * p.column * p.depth
    nbytes = rows * p.last * p.element_bytes
    if pieces == 1 or nbytes <= target.caches.l1:
        return 0.0
    near, far = LINES_LOST
    line = target.caches.line
    lost = l2_cycles(near * line, target) if nbytes <= target.caches.l2 else l3_cycles(far * line, target)
    return pieces * rows * lost


def shares_panels(tiles: int, width: int, panel: int, target: Target) -> bool:
    """Tells whether the *tiles* that use a panel of *panel* bytes, *width* elements a row, prefetch the next one together."""
    return target.core.read_ahead > 0 and 1 < tiles <= width and 2 * panel <= PANELS_SHARE * target.caches.l2


def _tile_cost(p: TileProblem, rows: int, vectors: int, target: Target) -> float:
    """Returns the cycles for a tile: bound by arithmetic, by loads, by the latency of its sums, or by the last cache."""
    sums = rows * vectors
    read = vectors * (rows if p.shared or not p.right_bytes else 1)
    panel = read * p.right_part * target.isa.vector_bits / 8  # bytes of the right factor in each step
    walked = max(panel * p.depth, p.between)
    is_far = p.reuses and walked > target.caches.l2 * L2_SHARE
    step = Demand(
        arithmetic=fma_cycles(sums * p.cycles + read * p.conversions + rows * p.row_conversions, target),
        loads=load_cycles((rows if p.right_bytes else 0) + read + _scattered_loads(p, int(panel), target), target),
        chain=max(target.core.fma_latency + CHAIN_SLACK, _scattered_cycles(p, int(panel), target)),
        l2=l2_cycles(panel, target) if walked > target.caches.l1 else 0.0,
        far=l3_cycles(panel, target) if is_far else 0.0,
    )
    return (step.cycles + _left_cost(p, rows, target)) * p.depth + TILE_OVERHEAD * sums


def _is_scattered(p: TileProblem, target: Target) -> bool:
    """Tells whether steps read pieces of rows of the right factor that are far from one another."""
    return p.reuses and not p.windows and p.right_stride >= NEAR_ROWS * target.caches.line


def _lines_of(p: TileProblem, piece: int, target: Target) -> int:
    """Returns the bytes of the lines that hold a *piece* of a row, in the mean."""
    return piece + target.caches.line - gcd(p.right_stride, piece, target.caches.line)


def _scattered_loads(p: TileProblem, piece: int, target: Target) -> float:
    """Returns the loads of a step beside one for each vector, where a *piece* of a row is far from the next: its prefetches, and
    one more for each vector that goes on in another line.

    On Zen 4 held to AVX2, 91 channels of 55 x 55 places to 18 take 0.81 of the time in tiles of 6 rows by two vectors of that in
    tiles of three by three (2026-11-28).
    """
    if not _is_scattered(p, target):
        return 0.0
    line, vector = target.caches.line, target.isa.vector_bits // 8
    crossing = piece / line if p.right_stride % vector else 0.0
    return crossing + (_lines_of(p, piece, target) / line if target.core.read_ahead else 0.0)


def _scattered_cycles(p: TileProblem, piece: int, target: Target) -> float:
    """Returns the cycles in which a step waits for a *piece* of a row of the right factor, in bytes, where these are far apart.

    A level sends whole lines, and holds pieces of all rows only if there is room in the sets that they share; pages lie anywhere
    in memory, so that the second level has as large a part of its sets for them. Where the sets do not hold the rows that are
    prefetched, lines evict one another.
    """
    if not _is_scattered(p, target):
        return 0.0
    lines = _lines_of(p, piece, target)
    sets = min(1.0, piece / gcd(p.right_stride, target.caches.set_period))
    if lines * p.depth <= target.caches.l1 * L1_SHARE * sets:
        return 0.0
    is_near = lines * p.depth <= target.caches.l2 * sets
    reading = l2_cycles(lines, target) if is_near else l3_cycles(lines, target)
    evicted = target.core.read_ahead > 0 and lines * ROWS_AHEAD > target.caches.l1 * sets
    return reading / target.caches.scattered_part * (READ_AGAIN if evicted else 1.0)


def _left_cost(p: TileProblem, rows: int, target: Target) -> float:
    """Returns the cycles of a step for the left factor's lines beyond those of its loads, where rows are far apart.

    Each row is a stream then. Lines a multiple of `set_period` apart share a set of the first-level cache, which holds one for
    each of its ways; any more are evicted before their next element is used.
    """
    if p.left_stride <= SIDE_BY_SIDE * target.caches.line:
        return 0.0
    apart = gcd(p.left_stride, target.caches.set_period)
    if apart >= target.caches.line and rows * apart > target.caches.l1 * SETS_SHARE:
        return LOAD_PRESSURE * l2_cycles(rows * target.caches.line, target)
    return ROW_CYCLES * rows * p.element_bytes / target.caches.line
