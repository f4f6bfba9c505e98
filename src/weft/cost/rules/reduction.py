"""Horizontal reductions: the number of accumulators, and the tiles of products of rows by rows."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import product

from weft.cost.demand import fma_cycles, l2_cycles, load_cycles
from weft.cost.plans.plan import Candidate, Decision
from weft.targets import Target

MOST_VECTORS = 8
"""The largest number of accumulators: enough to hide the latency of an addition."""

MOST_OPEN_VECTORS = 4
"""The largest number where it is not known how many elements there are: short rows combine accumulators that they never use.

Of a softmax of rows of 16, 40, 200 and 2000 elements, 4 take 0.85, 0.87, 0.98 and 1.00 of the time of 8 (EPYC 7003, 2026-11-25,
benchmarks/symbolic_sizes.py); of a mean, 0.86, 0.78, 1.00 and 1.10.
"""

SHORTEST_REDUCTION = 3
"""The smallest number of values that are worth a vector."""


@dataclass(frozen=True)
class Accumulators(Decision):
    """The number of vectors of partial results."""

    question = "the accumulators of a horizontal reduction"
    vectors: int


def accumulator_plans(
    extent: int, lanes: int, target: Target, *, is_open: bool = False
) -> Iterator[Candidate[Accumulators]]:
    """Yields the numbers of accumulators for *extent* elements, which is a guess where it *is_open*.

    A processor takes a vector in a cycle, but waits for the sum before. Of several numbers that take as long, the first is one
    with which few lanes are idle, and then the largest.
    """

    def preference(n: int) -> tuple[float, int, int]:
        return accumulator_cycles(extent, lanes, n, target), -(-extent // (n * lanes)) * n, -n

    for n in sorted(range(1, (MOST_OPEN_VECTORS if is_open else MOST_VECTORS) + 1), key=preference):
        yield Candidate(Accumulators(n), accumulator_cycles(extent, lanes, n, target))


def accumulator_cycles(extent: int, lanes: int, vectors: int, target: Target) -> float:
    """Returns the cycles of a reduction of *extent* elements into *vectors* accumulators of *lanes* each."""
    pieces = -(-extent // (vectors * lanes))
    return float(max(pieces * vectors, pieces * target.core.fma_latency))


TILE_SIDES = 1, 2, 3, 4, 6, 8
"""The rows and columns of tiles of products of rows by rows. With 4 x 6 sums, 4 rows times 4096 of 4096 elements took 3.2 ms on
one core of Emerald Rapids, with 4 x 4 4.6, and 5.3 with 4 x 2 (2026-11-27, the least of nine)."""

LANE_SUM_CYCLES = 8
"""The cycles in which the lanes of a sum are combined."""


PIECES_OF_CORE = 4
"""The pieces of all columns for each core: a core that is late leaves some to others."""

PIECE_TILES = 4
"""The fewest tiles of a piece, the length of its streams."""


@dataclass(frozen=True)
class InnerTile(Decision):
    """The rows and columns of a tile of a product of rows by rows, and the pieces of its columns that threads share.

    The columns of a tile lie apart in a piece, as many streams of memory. Of few columns, threads share the rows: *by_rows*.
    """

    question = "the tile of a product of rows by rows"
    rows: int
    columns: int
    pieces: int
    by_rows: bool


@dataclass(frozen=True)
class InnerProblem:
    """*others* independent products of *rows* by *columns*, each sum of *depth* products in vectors of *lanes*."""

    others: int
    rows: int
    columns: int
    depth: int
    lanes: int


def inner_tile_plans(p: InnerProblem, target: Target) -> Iterator[Candidate[InnerTile]]:
    """Yields the tiles of such products, by cycles.

    The columns of a tile are used for all rows before the next: after the first rows, they are read from the second level.
    """
    sides = [(r, c) for r, c in product(TILE_SIDES, repeat=2) if r <= p.rows and c <= p.columns]
    room = target.isa.vector_registers - 1
    fitting = [(r, c) for r, c in sides if r * c + min(r, c) <= room]
    wanted = 1 if target.cores == 1 else -(-PIECES_OF_CORE * target.cores // p.others)

    def cycles(r: int, c: int) -> float:
        step = max(fma_cycles(r * c, target), load_cycles(r + c, target), float(target.core.fma_latency))
        steps, times = -(-p.depth // p.lanes), -(-p.rows // r)
        again = l2_cycles(c * steps * target.isa.vector_bits // 8, target)
        each = times * (steps * step + r * c * LANE_SUM_CYCLES) + (times - 1) * again
        return p.others * -(-p.columns // c) * each

    for r, c in sorted(fitting, key=lambda t: (cycles(*t), -t[0], -t[1])):
        pieces = _without_remainder(p.columns, c, max(1, min(wanted, p.columns // (c * PIECE_TILES))))
        by_rows = pieces < min(wanted, -(-p.rows // r))
        yield Candidate(InnerTile(r, c, 1 if by_rows else pieces, by_rows), cycles(r, c))


def _without_remainder(columns: int, of_tile: int, most: int) -> int:
    """Returns the largest number of pieces, above half of the most, that all have the same number of whole tiles; else the most.

    Where pieces have a remainder, tiles have versions with guards, which take ten times the code and the time to compile it.
    """
    return next((n for n in range(most, most // 2, -1) if columns % (n * of_tile) == 0), most)
