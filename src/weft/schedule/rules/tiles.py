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

TYPICAL_DEPTH = 256
"""Steps of a reduction that the overhead is weighed against."""


@dataclass(frozen=True)
class Tile:
    """A tile of `rows` x `columns` vectors of `width` elements."""

    rows: int
    columns: int
    width: int


def choose_tile(row: int, column: int, last: int, lanes: int, target: Target) -> Tile:
    """Returns the cheapest tile for axes of *row*, *column* and *last* elements; the last is the one in vectors."""
    width = min(last, lanes * 4)
    while last % width and width > lanes:
        width -= lanes
    vectors = -(-width // lanes)
    room = target.vector_registers - 2
    best: tuple[float, Tile] | None = None
    for c in [c for c in (1, 2, 3, 4) if c <= column and column % c == 0 and vectors * c <= 6]:
        for r in range(1, row + 1):
            if r * c * vectors + c * vectors + 1 > room and (r, c) != (1, 1):
                break
            cost = _grid_cost(row, r, c * vectors, target) * (column / c)
            if best is None or cost < best[0] * 0.999:
                best = (cost, Tile(r, c, width))
    return best[1] if best else Tile(1, 1, width)


def _grid_cost(row: int, rows: int, vectors: int, target: Target) -> float:
    """Returns the cycles for a row of tiles, a smaller one at the end included."""
    full, rest = divmod(row, rows)
    return full * _tile_cost(rows, vectors, target) + (_tile_cost(rest, vectors, target) if rest else 0)


def _tile_cost(rows: int, vectors: int, target: Target) -> float:
    """Returns the cycles for a tile: bound by arithmetic, by loads, or by the latency of its sums."""
    sums = rows * vectors
    arithmetic = sums / max(1, target.fma_per_cycle)
    loads = (rows + vectors) / LOADS_PER_CYCLE
    step = max(arithmetic, loads, LATENCY) + LOAD_PRESSURE * loads
    return step * TYPICAL_DEPTH + TILE_OVERHEAD * sums
