"""Unroll and jam for element-wise formulas: several vectors go through each step of a long formula together.

    for v in range(n): y[v] = tanh(x[v])     ->     for v in range(n / 4): y[v], y[v + 1] ... = tanh(x[v]), tanh(x[v + 1]) ...

A polynomial is a chain of multiply-adds that wait for one another. A core runs the next vectors beside it, as far as its
scheduler holds their instructions; side by side in the program, they also share the constants that they load and the count of the
loop (Allen and Cocke, "A catalogue of optimizing transformations", 1972).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Final

from weft.cost.plans.plan import Candidate, Decision
from weft.cost.program import FUNCTION_OPERATIONS

JAMMED: Final = (1, 2, 4)
"""The vectors of a map that may go through each step together: LLVM fills a vector of others up to a power of two, and the values
of four, and the constants, take most of 16 registers."""

WAITING: Final = 0.3
"""The part of a vector's time that it waits where it is the only one. On one core of a Zen 3 server four vectors at once take 0.9
of the time of one for an exponential, 0.74 to 0.9 for tanh, sigmoid, erf, GELU, ELU and Mish; two 0.9 to 1.0 (32768 and 4096
elements, 2026-11-29)."""


@dataclass(frozen=True)
class Jam(Decision):
    """How many vectors of a map go through each step together."""

    question = "the vectors of a step"
    vectors: int


def is_long_formula(operations: float) -> bool:
    """Tells whether a formula of so many arithmetic instructions, functions counted as what they expand to, makes one wait."""
    return operations >= FUNCTION_OPERATIONS


def jam_plans(numbers: Sequence[int], operations: float) -> Iterator[Candidate[Jam]]:
    """Yields the *numbers* of vectors that a loop can take at once, with its cycles for so many *operations* in all."""
    for together in numbers:
        yield Candidate(Jam(together), operations * (1 + WAITING / together))
