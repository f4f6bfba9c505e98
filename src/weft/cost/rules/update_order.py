"""The order of a scatter's updates on a grid: one after another, or as threads come, each by an atomic operation."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

from weft.cost.plans.plan import Candidate, Decision
from weft.cost.rules.grid_time import FETCH_CYCLES, LAUNCH_CYCLES, traffic_cycles
from weft.targets import Target

LOADS_IN_TURN: Final = 2
"""Loads of an update that wait for one another: of its index, and of the element there."""

WORD_BYTES: Final = 4
"""The bytes of the number of an update."""

SECTOR_BYTES: Final = 32.0
"""The bytes that memory moves for an update of one word somewhere."""


@dataclass(frozen=True)
class UpdateOrder(Decision):
    """Whether the updates of a scatter are applied in *any* order, by threads side by side."""

    question = "the order of a scatter's updates"
    of_grids = True
    any: bool


def update_order_plans(
    steps: int, slices: int, elements: int, *, replaces: bool, target: Target
) -> Iterator[Candidate[UpdateOrder]]:
    """Yields both orders of *steps* updates of *slices* elements each, of a tensor of so many *elements*, with their cycles.

    Where an update *replaces* an element, the number of the last one is found first: in any order, two more kernels.
    """
    yield Candidate(UpdateOrder(any=False), steps * LOADS_IN_TURN * FETCH_CYCLES)
    updates = LOADS_IN_TURN * FETCH_CYCLES + traffic_cycles(steps * slices * SECTOR_BYTES, target)
    numbers = 2 * LAUNCH_CYCLES + updates + traffic_cycles(elements * WORD_BYTES, target)
    yield Candidate(UpdateOrder(any=True), updates + (numbers if replaces else 0.0))
