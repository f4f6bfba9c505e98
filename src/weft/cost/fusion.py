"""How far operators are fused and expanded."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from weft.cost.plans.plan import Candidate, Decision
from weft.cost.plans.planner import by_cost

LARGEST_RECOMPUTATION: Final = 2
"""How many times an element may be computed by the cheapest fusion, rather than stored once."""

LARGEST_GROUP: Final = 64
"""Nodes in a group; larger kernels take long to compile and gain nothing."""

LARGEST_POWER: Final = 4
"""Exponents up to this one are multiplied out."""


@dataclass(frozen=True)
class Recompute(Decision):
    """Whether a node is fused into its users though they need each of its elements several times."""

    question = "fusing a node whose elements are then computed several times"
    fuse: bool


def recomputation_plans(times: float) -> list[Candidate[Recompute]]:
    """Returns both choices for a node whose elements would be computed *times* times; costs are relative to computing once."""
    apart = Candidate(Recompute(fuse=False), float(LARGEST_RECOMPUTATION))
    return by_cost([Candidate(Recompute(fuse=True), times), apart])
