"""Tiles of a contraction on a grid: what a block of threads computes, from parts of its factors in the memory that they share."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

from weft.cost.plans.plan import Candidate, Decision
from weft.targets import Target

SHAPES = ((8, 8), (16, 16), (8, 16), (16, 8), (4, 16), (16, 4), (1, 1))
"""Threads of a block along rows and columns; one thread is what a device takes that is a processor."""

REGISTERS = (4, 2, 8, 1, 16)
"""Rows, and columns, of results that one thread keeps in registers."""

MOST_RESULTS = 32, 128
"""Results that a thread of many keeps in registers at most, and a thread that has a block to itself."""

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

LEAST_BLOCKS = 64
"""Blocks below which a device's multiprocessors are not all at work."""


@dataclass(frozen=True)
class SharedTile(Decision):
    """A block of *y* by *x* threads, each with *rows* by *columns* results, fetches *depth* steps at once; all 0: no tiles.

    With *unroll*, the driver's compiler is asked to write these steps out.
    """

    question = "the tile of a block of threads"
    of_grids = True
    y: int
    x: int
    rows: int
    columns: int
    depth: int
    unroll: bool = False


NO_TILE = SharedTile(0, 0, 0, 0, 0)


def shared_tile_plans(
    rows: int, columns: int, batch: int, terms: int, target: Target
) -> Iterator[Candidate[SharedTile]]:
    """Yields the tiles of *batch* products of *rows* by *columns* results with so many *terms*, and the choice of none.

    The cycles are those of all threads together, longer where there are too few blocks to keep the device at work.
    """
    work = float(rows * columns * batch * terms)
    yield Candidate(NO_TILE, work * (1 + 2 * GLOBAL_CYCLES))
    for y, x in SHAPES:
        for m in REGISTERS:
            for n in REGISTERS:
                for depth in DEPTHS:
                    made = _candidate(SharedTile(y, x, m, n, depth), (rows, columns, batch, terms), target)
                    if made is not None:
                        yield made
                        yield Candidate(replace(made.decision, unroll=True), made.cycles)


def _candidate(tile: SharedTile, sizes: tuple[int, int, int, int], target: Target) -> Candidate[SharedTile] | None:
    """Returns a tile with its cycles; None where a block has no room for it."""
    shared, grid = target.scope("shared"), target.grid
    most = shared.bytes if shared is not None and shared.bytes is not None else 0
    rows, columns, batch, terms = sizes
    m, n, threads = tile.rows, tile.columns, tile.y * tile.x
    high, wide = tile.y * m, tile.x * n
    room = (high + wide) * tile.depth * 4
    if (
        room > most
        or grid is None
        or threads > grid.block
        or m * n > MOST_RESULTS[threads == 1]
        or min(high, wide) == 1
    ):
        return None
    if tile.depth != DEPTHS[0] and tile.depth > terms:
        return None
    blocks = -(-rows // high) * -(-columns // wide) * batch
    padded = float(blocks * high * wide * terms)
    cycles = padded * (1 + SHARED_CYCLES * (1 / m + 1 / n) + GLOBAL_CYCLES * (1 / high + 1 / wide))
    cycles += blocks * threads * -(-terms // tile.depth) * BARRIER_CYCLES
    cycles *= (1 + CROWDED * room / most) * max(1.0, grid.warp / threads)
    return Candidate(tile, cycles * max(1.0, LEAST_BLOCKS / blocks) ** 0.5)
