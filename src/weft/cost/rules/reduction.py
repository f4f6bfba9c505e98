"""Horizontal reductions: the number of accumulators."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

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
