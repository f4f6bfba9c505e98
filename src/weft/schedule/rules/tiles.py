"""The size of register tiles, from the number of registers, the latency and the ports of the machine.

After Low, Igual, Smith and Quintana-Orti, "Analytical modeling is enough for high-performance BLIS" (2016), section 4: a tile
must have enough independent sums to hide the latency of multiply-adds, fit the registers, and need few loads for each of them.
What is minimised is the cycles of the *whole* grid of tiles, the last and smaller ones of a row included.
"""

from __future__ import annotations

from dataclasses import dataclass

from weft.targets.target import Target

LATENCY = 4
"""Cycles from one multiply-add to the next that needs its result, on current x86 cores."""

LOADS_PER_CYCLE = 2

LOAD_PRESSURE = 0.25
"""The part of a load's cycles that shows even when arithmetic covers them: cache misses and late operands."""

TILE_OVERHEAD = 12
"""Cycles that a tile costs beside its reduction, for each vector: it is started from zero, finished and stored."""

L2_SHARE = 0.7
"""The part of the second-level cache that the right factor's panel may fill, to be found there by the next tile."""

LAST_CACHE_BYTES_PER_CYCLE = 24
"""What one core reads of the last-level cache."""


@dataclass(frozen=True)
class Tile:
    """A tile of `rows` x `columns` vectors of `width` elements."""

    rows: int
    columns: int
    width: int


@dataclass(frozen=True)
class Problem:
    """What a tile is chosen for: the sizes of the two tiled axes and of the last, and the steps of the reduction.

    Where *open_row* the row's size is a guess: then a tile is a power of two, as sizes in use often are.
    """

    row: int
    column: int
    last: int
    depth: int
    element_bytes: int
    open_row: bool = False


def choose_tile(problem: Problem, target: Target) -> Tile:
    """Returns the cheapest tile; its width is the last axis in vectors, all of it if that is not many."""
    lanes = target.lanes(problem.element_bytes * 8)
    width = min(problem.last, lanes * 4)
    while problem.last % width and width > lanes:
        width -= lanes
    vectors = -(-width // lanes)
    room = target.vector_registers - 2
    best: tuple[float, Tile] | None = None
    for c in [c for c in (1, 2, 3, 4) if problem.column % c == 0 and vectors * c <= 6]:
        for r in range(1, problem.row + 1):
            if r * c * vectors + c * vectors + 1 > room and (r, c) != (1, 1):
                break
            if problem.open_row and r & (r - 1):
                continue
            cost = _grid_cost(problem, r, c * vectors, target) * (problem.column / c)
            if best is None or cost < best[0] * 0.999:
                best = (cost, Tile(r, c, width))
    return best[1] if best else Tile(1, 1, width)


def _grid_cost(p: Problem, rows: int, vectors: int, target: Target) -> float:
    """Returns the cycles for a row of tiles, a smaller one at the end included."""
    full, rest = divmod(p.row, rows)
    last = _tile_cost(p, rest, vectors, target) if rest else 0
    return full * _tile_cost(p, rows, vectors, target) + last


def _tile_cost(p: Problem, rows: int, vectors: int, target: Target) -> float:
    """Returns the cycles for a tile: bound by arithmetic, by loads, by the latency of its sums, or by the last cache."""
    sums = rows * vectors
    arithmetic = sums / max(1, target.fma_per_cycle)
    loads = (rows + vectors) / LOADS_PER_CYCLE
    panel = vectors * target.vector_bits // 8  # bytes of the right factor in each step
    far = panel / LAST_CACHE_BYTES_PER_CYCLE if panel * p.depth > target.l2 * L2_SHARE else 0.0
    step = max(arithmetic, loads, far, LATENCY) + LOAD_PRESSURE * (loads + 2 * far)
    return step * p.depth + TILE_OVERHEAD * sums
