"""Whether the axes behind a reduction are made one: vectors go along the last axis, which may be too short to fill them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from weft.cost.plans.plan import Candidate, Decision
from weft.cost.plans.planner import by_cost
from weft.targets import Target

LONG_ROW: Final = 4
"""Vectors of a last axis from which on vectors along it are full often enough, so that no axes are merged with it."""


@dataclass(frozen=True)
class MergeAxes(Decision):
    """Whether the axes behind those that are reduced are made one."""

    question = "the axes behind a reduction"
    merge: bool


def merge_plans(row: int, bits: int, target: Target) -> list[Candidate[MergeAxes]]:
    """Returns both choices for a last axis of *row* elements of *bits* bits; costs are relative to that of the merged axis."""
    apart = LONG_ROW * target.lanes(bits) / max(1, row)
    return by_cost([Candidate(MergeAxes(merge=False), apart), Candidate(MergeAxes(merge=True), 1.0)])
