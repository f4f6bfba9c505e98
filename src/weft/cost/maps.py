"""Unroll and jam for element-wise formulas: several vectors go through each step of a long formula together.

    for v in range(n): y[v] = tanh(x[v])     ->     for v in range(n / 4): y[v], y[v + 1] ... = tanh(x[v]), tanh(x[v + 1]) ...

A polynomial is a chain of multiply-adds that wait for one another. A core runs the next vectors beside it, as far as its
scheduler holds their instructions; side by side in the program, they also share the constants that they load and the count of the
loop (Allen and Cocke, "A catalogue of optimizing transformations", 1972).
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

from weft.cost.plans.plan import Candidate, Decision
from weft.cost.program import FUNCTION_OPERATIONS

MOST_JAMMED: Final = 4
"""The most vectors of a map that go through each step together: their values and the constants take most of 16 registers."""

WAITING: Final = 0.3
"""The part of a vector's time that it waits where it is the only one. On one core of a Zen 3 server four vectors at once take 0.9
of the time of one for an exponential, 0.78 to 0.9 for tanh, sigmoid, erf, GELU, ELU and Mish, 0.73 to 0.78 for softplus, 1.0 for a
sine; two 0.9 to 1.0 of it (32768 and 4096 elements, 2026-11-29)."""


@dataclass(frozen=True)
class Jam(Decision):
    """How many vectors of a map go through each step together."""

    question = "the vectors of a step"
    vectors: int


def may_jam(vectors: int, operations: float) -> bool:
    """Tells whether a loop of so many *vectors* can take several at once, and its formula makes one wait.

    The formula has so many arithmetic *operations*, of which functions count as what they expand to.
    """
    return operations >= FUNCTION_OPERATIONS and any(vectors % n == 0 for n in range(2, MOST_JAMMED + 1))


def jam_plans(vectors: int, operations: float) -> Iterator[Candidate[Jam]]:
    """Yields the numbers that divide a loop of so many *vectors*, each of so many arithmetic *operations*, with its cycles."""
    for together in range(1, MOST_JAMMED + 1):
        if vectors % together == 0:
            yield Candidate(Jam(together), vectors * operations * (1 + WAITING / together))
