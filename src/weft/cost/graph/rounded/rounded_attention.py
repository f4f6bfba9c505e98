"""Whether the factors of an attention of float32 are rounded to 16 bits, and multiplied in fragments, on a grid.

Costs are in cycles of the device.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from math import inf

from weft.cost.plans.plan import Candidate, Decision
from weft.cost.plans.planner import by_cost
from weft.cost.rules.attention_tile import AttentionSizes, attention_tile_plans
from weft.cost.rules.grid_time import FETCH_CYCLES, LAUNCH_CYCLES, traffic_cycles
from weft.support.dtypes import bf16, f32
from weft.targets import Target


@dataclass(frozen=True)
class RoundedAttention(Decision):
    """Whether the queries, keys and values of an attention of float32 are rounded to bf16."""

    question = "rounding of an attention's factors on a grid"
    of_grids = True
    rounded: bool


def rounded_attention_plans(
    sizes: AttentionSizes, target: Target, stored: tuple[int, ...] = ()
) -> list[Candidate[RoundedAttention]]:
    """Returns the forms of an attention of float32.

    *stored* are the elements of each factor that no kernel makes for this attention alone: it takes a launch to round these.
    """
    wide = min(c.cycles for c in attention_tile_plans(sizes, target))
    tiles = attention_tile_plans(replace(sizes, narrow=True), target)
    narrow = min([c.cycles for c in tiles if c.decision.warps], default=inf)
    launches = len(stored) * (LAUNCH_CYCLES + FETCH_CYCLES)
    moved = traffic_cycles(sum(stored) * (f32.bytes + bf16.bytes), target)
    found = [Candidate(RoundedAttention(rounded=False), wide)]
    if narrow < inf:
        found.append(Candidate(RoundedAttention(rounded=True), narrow + launches + moved))
    return by_cost(found)
