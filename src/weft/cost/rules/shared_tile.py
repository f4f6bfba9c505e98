"""Tiles of a contraction on a grid: what a block of threads computes, from parts of its factors in the memory that they share."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from weft.cost.plans.plan import Candidate, Decision
from weft.targets import Target

SHAPES = ((8, 8), (16, 16), (8, 16), (16, 8), (4, 16), (16, 4))
"""Threads of a block along rows and columns."""

REGISTERS = (4, 2, 8, 1)
"""Rows, and columns, of results that one thread keeps in registers."""

DEPTH = 16
"""Steps of the reduction between two fetches."""

SHARED_CYCLES, GLOBAL_CYCLES = 1.0, 8.0
"""What reading an element takes a thread, beside a multiply-add: of shared memory, and of the device's."""

LONG_ENOUGH = 16
"""Elements of an axis beyond which it is as good for tiles as a longer one."""

LEAST_BLOCKS = 64
"""Blocks below which a device's multiprocessors are not all at work."""


@dataclass(frozen=True)
class SharedTile(Decision):
    """A block of *y* by *x* threads, each with *rows* by *columns* results, fetches *depth* steps at once; all 0: no tiles."""

    question = "the tile of a block of threads"
    of_grids = True
    y: int
    x: int
    rows: int
    columns: int
    depth: int


NO_TILE = SharedTile(0, 0, 0, 0, 0)


def shared_tile_plans(
    rows: int, columns: int, batch: int, terms: int, target: Target
) -> Iterator[Candidate[SharedTile]]:
    """Yields the tiles of *batch* products of *rows* by *columns* results with so many *terms*, and the choice of none.

    The cycles are those of all threads together, longer where there are too few blocks to keep the device at work.
    """
    work = float(rows * columns * batch * terms)
    yield Candidate(NO_TILE, work * (1 + 2 * GLOBAL_CYCLES))
    shared = target.scope("shared")
    most = shared.bytes if shared is not None and shared.bytes is not None else 0
    for y, x in SHAPES:
        for m in REGISTERS:
            for n in REGISTERS:
                high, wide = y * m, x * n
                fits = (high + wide) * DEPTH * 4 <= most and target.grid is not None and y * x <= target.grid.block
                if not fits or m * n > 32:
                    continue
                blocks = -(-rows // high) * -(-columns // wide) * batch
                padded = float(blocks * high * wide * terms)
                cycles = padded * (1 + SHARED_CYCLES * (1 / m + 1 / n) + GLOBAL_CYCLES * (1 / high + 1 / wide))
                idle = max(1.0, LEAST_BLOCKS / blocks) ** 0.5
                yield Candidate(SharedTile(y, x, m, n, DEPTH), cycles * idle)
