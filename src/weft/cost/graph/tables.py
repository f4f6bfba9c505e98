"""Whether a function of a byte is computed for each element, or looked up in a table of its 256 results."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from weft.cost.demand import fma_cycles, load_cycles
from weft.cost.plans.plan import Candidate, Decision
from weft.cost.plans.planner import by_cost
from weft.support.dtypes import f32
from weft.targets import Target

STORE_CYCLES: Final = 1.0
"""Cycles of storing an element by itself, as looking it up does: the busiest unit of a loop over bytes."""


@dataclass(frozen=True)
class Tabulate(Decision):
    """Whether a function of a byte is a *table*."""

    question = "a function of a byte"
    table: bool


def table_plans(operations: float, target: Target) -> list[Candidate[Tabulate]]:
    """Returns both choices for a function of so many arithmetic instructions; costs are cycles of an element."""
    computed = fma_cycles(operations / target.lanes(f32.bits), target)
    looked_up = STORE_CYCLES + load_cycles(1, target)
    return by_cost([Candidate(Tabulate(table=False), computed), Candidate(Tabulate(table=True), looked_up)])
