"""The size of register tiles, from the number of registers, the latency and the ports of the machine.

After Low, Igual, Smith and Quintana-Orti, "Analytical modeling is enough for high-performance BLIS" (2016), section 4: a tile
must have enough independent sums to hide the latency of multiply-adds, fit the registers, and need few loads for each of them.
What is minimised is the cycles of the *whole* grid of tiles, the last and smaller ones of a row included.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from math import gcd

from weft.targets.target import PAGE, Target

LATENCY = 4
"""Cycles from one multiply-add to the next that needs its result, on current x86 cores."""

LOADS_PER_CYCLE = 2

LOAD_PRESSURE = 0.25
"""The part of a load's cycles that shows even when arithmetic covers them: cache misses and late operands."""

SIDE_BY_SIDE = 4
"""Lines between rows of the left factor that are read as one stream; further apart each row is a stream of its own."""

ROW_CYCLES = 4.0
"""Cycles that a line of such a stream holds up a tile."""

SETS_SHARE = 0.7
"""The part of the first-level cache that rows in the same sets may fill."""

TILE_OVERHEAD = 12
"""Cycles that a tile costs beside its reduction, for each vector: it is started from zero, finished and stored."""

PANEL_VECTORS = 4
"""Vectors of a tile along the last axis."""

OPEN_ROWS = 8
"""Rows of a tile where it is not known how many there are: the last tile is written out for each number of them."""

LONGEST_RUN = 16
"""Vectors along the last axis of a tile that uses what it reads once: long pieces are what memory is quick at."""

NEAR_ROWS = 8
"""Lines of the longest rows that follow each other so closely that memory goes on with the next one."""

RESTART = 16.0
"""Cycles that memory takes to get going where a tile reads only a piece of each row of the right factor."""

PANELS_SHARE = 0.75
"""The part of the second-level cache that two panels may fill."""

L2_SHARE = 0.7
"""The part of the second-level cache that the right factor's panel may fill, to be found there by the next tile."""


@dataclass(frozen=True)
class Tile:
    """A tile of `rows` x `columns` vectors of `width` elements, for each of `outer_rows`."""

    rows: int
    columns: int
    width: int
    outer_rows: int = 1

    def sums(self, lanes: int) -> int:
        """Returns how many vectors of *lanes* sums it has."""
        return self.rows * self.outer_rows * self.columns * -(-self.width // lanes)


@dataclass(frozen=True)
class Problem:
    """What a tile is chosen for: the sizes of the two tiled axes and of the last, and the steps of the reduction.

    Where *open_row* the row's size is a guess, and a tile has few of them; so may that of the last axis be, by *open_last*, and
    the columns', by *open_column*. The *outer_row* is another axis of which a tile may hold several, with all of the row. The
    right factor has *right_bytes* in all, for whatever other axes it has, too, and none where nothing is multiplied; in the left
    one, rows are *left_stride* bytes apart. Where rows are *shared* by both factors, each has a right factor of its own.
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
    shared: bool = False

    @property
    def reuses(self) -> bool:
        """Tells whether anything of the right factor is used more than once."""
        return not self.shared and self.row * self.outer_row > 1


def choose_tile(problem: Problem, target: Target) -> Tile:
    """Returns the cheapest tile, the wait for the right factor counted; its width is all of the last axis if that is short."""
    tiles = [t for width in _widths(problem, target) for t in _tiles_that_fit(problem, width, target)]
    return _cheapest([(_grid_cost(problem, t, target) + _first_touch(problem, t, target), t) for t in tiles])


def _widths(p: Problem, target: Target) -> list[int]:
    """Returns how wide a tile may be: what divides the last axis, or where that is only one vector, what leaves a rest."""
    lanes = target.lanes(p.element_bytes * 8)
    if p.last <= lanes:
        return [p.last]
    most = PANEL_VECTORS if p.reuses and p.right_bytes else min(LONGEST_RUN, target.vector_registers - 2)
    widths = list(dict.fromkeys([min(p.last, lanes * v) for v in range(most, 0, -1)]))
    even = [w for w in widths if p.last % w == 0]
    if p.open_last:
        return even[:1] or [lanes]
    return even if even and even[0] > lanes else widths


def _cheapest(costs: Sequence[tuple[float, Tile]]) -> Tile:
    """Returns the first tile that no other is clearly cheaper than."""
    best = costs[0]
    for c in costs[1:]:
        if c[0] < best[0] * 0.999:
            best = c
    return best[1]


def _tiles_that_fit(p: Problem, width: int, target: Target) -> Iterator[Tile]:
    """Yields the tiles that leave registers for their operands, smaller ones first; at least the smallest of all."""
    vectors = -(-width // target.lanes(p.element_bytes * 8))
    most = target.vector_registers  # no axis is so long that more of it need be tried: each row takes a register
    rows = [(r, 1) for r in range(1, min(p.row, most) + 1) if not p.open_row or r <= OPEN_ROWS]
    rows += [(p.row, o) for o in range(2, min(p.outer_row, most) + 1)]
    yield Tile(1, 1, width)
    columns = (1, 2, 3, 4) if width == p.last else (1,)  # a part of a row of each of several panels is no stream
    for c in [c for c in columns if _may_cut(p, c) and vectors * c <= 6]:
        for r, o in rows:
            operands = c * vectors if r * o > 1 and not p.shared else 0  # what is used once is no register's
            if r * o * c * vectors + operands + 1 > target.vector_registers - 1:
                break
            yield Tile(r, c, width, o)


def _may_cut(p: Problem, columns: int) -> bool:
    """Tells whether tiles may have so many columns: of a known number some may be left for the last one."""
    return p.column % columns == 0 if p.open_column else columns <= p.column


def _grid_cost(p: Problem, tile: Tile, target: Target) -> float:
    """Returns the cycles for the whole grid of tiles, smaller ones at the ends included."""
    lanes = target.lanes(p.element_bytes * 8)
    whole, narrow = divmod(p.last, tile.width)
    cost = whole * _strip_cost(p, tile, -(-tile.width // lanes), target)
    return cost + (_strip_cost(p, tile, -(-narrow // lanes), target) if narrow else 0.0)


def _strip_cost(p: Problem, tile: Tile, vectors: int, target: Target) -> float:
    """Returns the cycles for all tiles whose columns are *vectors* wide, one beside another along the columns and rows."""
    whole, few = divmod(p.column, tile.columns)
    cost = whole * _column_cost(p, tile, tile.columns * vectors, target)
    return cost + (_column_cost(p, tile, few * vectors, target) if few else 0.0)


def _column_cost(p: Problem, tile: Tile, vectors: int, target: Target) -> float:
    """Returns the cycles for all tiles that are *vectors* wide, one below another along the rows."""
    (full, rest), (many, few) = divmod(p.row, tile.rows), divmod(p.outer_row, tile.outer_rows)
    cost = many * full * _tile_cost(p, tile.rows * tile.outer_rows, vectors, target)
    if rest:
        cost += many * _tile_cost(p, rest, vectors, target)
    if few:
        cost += _tile_cost(p, tile.rows * few, vectors, target)
    return cost


def _first_touch(p: Problem, tile: Tile, target: Target) -> float:
    """Returns the cycles that the first tile with each panel waits for a right factor too large for the second-level cache."""
    if p.right_bytes <= target.l2:
        return 0.0
    speed = target.l3_speed if p.right_bytes < target.l3 / 2 else target.memory_speed
    panels = tile.columns * (tile.rows if p.shared else 1)
    lanes = target.lanes(p.element_bytes * 8)
    vectors, sums = -(-tile.width // lanes), tile.sums(lanes)
    below = -(-p.row // tile.rows) * -(-p.outer_row // tile.outer_rows)
    if p.reuses and shares_panels(below, tile.width, panels * tile.width * p.element_bytes * p.depth, target):
        sums = p.row * p.outer_row * tile.columns * vectors  # those of all tiles, which ask for the next panel together
    waiting = max(0.0, panels * vectors * target.vector_bits / 8 / speed - sums / max(1, target.fma_per_cycle))
    if tile.width < p.last and p.last * p.element_bytes > NEAR_ROWS * target.cache_line:
        waiting += RESTART * panels
    tiles = -(-p.column // tile.columns) * -(-p.last // tile.width) * (-(-p.row // tile.rows) if p.shared else 1)
    return waiting * p.depth * tiles


def shares_panels(tiles: int, width: int, panel: int, target: Target) -> bool:
    """Tells whether the *tiles* that use a panel of *panel* bytes, *width* elements a row, ask for the next one together."""
    return target.read_ahead > 0 and 1 < tiles <= width and 2 * panel <= PANELS_SHARE * target.l2


def _tile_cost(p: Problem, rows: int, vectors: int, target: Target) -> float:
    """Returns the cycles for a tile: bound by arithmetic, by loads, by the latency of its sums, or by the last cache."""
    sums = rows * vectors
    arithmetic = sums / max(1, target.fma_per_cycle)
    read = vectors * (rows if p.shared or not p.right_bytes else 1)
    loads = ((rows if p.right_bytes else 0) + read) / LOADS_PER_CYCLE
    panel = read * target.vector_bits // 8  # bytes of the right factor in each step
    far = panel / target.l3_speed if p.reuses and panel * p.depth > target.l2 * L2_SHARE else 0.0
    near = panel / target.l2_speed if panel * p.depth > target.l1 else 0.0
    step = max(arithmetic, loads, far, LATENCY) + LOAD_PRESSURE * (loads + near + 2 * far) + _left_cost(p, rows, target)
    return step * p.depth + TILE_OVERHEAD * sums


def _left_cost(p: Problem, rows: int, target: Target) -> float:
    """Returns the cycles of a step for the left factor's lines beyond those of its loads, where rows are far apart.

    Each row is a stream then. Lines a multiple of `PAGE` apart share a set of the first-level cache, which holds one for each of
    its ways: where that is too few they push one another out before their next element is used.
    """
    if p.left_stride <= SIDE_BY_SIDE * target.cache_line:
        return 0.0
    apart = gcd(p.left_stride, PAGE)
    if apart >= target.cache_line and rows * apart > target.l1 * SETS_SHARE:
        return LOAD_PRESSURE * rows * target.cache_line / target.l2_speed
    return ROW_CYCLES * rows * p.element_bytes / target.cache_line
