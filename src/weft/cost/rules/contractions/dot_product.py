"""Which instruction of a target computes a dot product of narrow elements."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from weft.cost.plans.plan import Candidate, Decision
from weft.support.dtypes import DType
from weft.targets import Target
from weft.targets.instructions import dot_products


@dataclass(frozen=True)
class DotInstruction(Decision):
    """The tensor instruction for a dot product, by its name; empty for a loop over single products."""

    question = "the instruction of a dot product"
    name: str


def dot_plans(
    kinds: tuple[DType, DType, DType], columns: int, group: int, target: Target
) -> Iterator[Candidate[DotInstruction]]:
    """Yields the instructions of *target* for elements of two types summed in a third, *group* terms at a time.

    *columns* stand side by side in a panel, whole vectors of them. The cost is that of one vector of sums in multiply-adds,
    of which a loop has one for each term of each lane.
    """
    for name, shape in dot_products(target).items():
        if (shape.a, shape.b, shape.sums) == kinds and shape.group == group and columns % shape.lanes == 0:
            yield Candidate(DotInstruction(name), shape.cycles)
    yield Candidate(DotInstruction(""), float(target.lanes(kinds[2].bits) * group))
