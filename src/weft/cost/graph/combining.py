"""Products of one tensor by several matrices on a grid: one by one, or as one product (horizontal fusion).

Costs are in cycles of the device.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from weft.cost.graph.packing import MANY_ROWS
from weft.cost.plans.plan import Candidate, Decision
from weft.cost.plans.planner import by_cost
from weft.cost.rules.fragment_tile import FragmentProduct, fragment_tile_plans
from weft.cost.rules.grid_time import LAUNCH_CYCLES
from weft.cost.rules.row_threads import matrix_vector_cycles
from weft.cost.rules.shared_tile import plain_product, shared_tile_plans
from weft.support.dtypes import DType, f32
from weft.targets import Grid, Target


@dataclass(frozen=True)
class CombineProducts(Decision):
    """Whether products of the same left factor are computed as one, by their matrices side by side."""

    question = "combining products of one tensor"
    of_grids = True
    combine: bool


def combine_product_plans(
    rows: int | None, depth: int, columns: Sequence[int], target: Target, factors: DType = f32
) -> list[Candidate[CombineProducts]]:
    """Returns the choices for products of *rows*, None for many, of *depth* terms, by matrices of so many *columns* each.

    *factors* other than of float32 are those of products in fragments, if these are faster.
    """
    grid = target.grid or Grid()

    def cycles(wide: int) -> float:
        if rows == 1:
            return matrix_vector_cycles(depth, wide, f32.bits, target, side_by_side=True)
        plans = shared_tile_plans(plain_product(MANY_ROWS if rows is None else rows, wide, 1, depth), target)
        found = [c.cycles for c in plans]
        if rows is not None and factors is not f32:
            tiles = fragment_tile_plans(FragmentProduct(rows, wide, 1, depth, depth, factors), target)
            found += [c.cycles for c in tiles if c.decision.warps]
        return min(found) / (grid.lanes * grid.multiprocessors)

    apart = sum(map(cycles, columns)) + (len(columns) - 1) * LAUNCH_CYCLES
    together = cycles(sum(columns))
    return by_cost(
        [Candidate(CombineProducts(combine=False), apart), Candidate(CombineProducts(combine=True), together)]
    )
