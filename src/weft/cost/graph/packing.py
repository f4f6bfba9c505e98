"""How matrices are cut in panels for products, and from how many rows of the other operand on packing pays.

The figures were fitted on one core of a server of Intel's Emerald Rapids kind and on one of AMD's Zen 4, 2026-11-22
(docs/design/0014 and 0041).
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from math import inf
from typing import Final

from weft.cost.demand import l3_cycles, memory_cycles
from weft.cost.graph.arithmetic import filled_part, multiply_cycles
from weft.cost.plans.plan import Candidate, Decision
from weft.cost.plans.planner import by_cost
from weft.cost.rules.reduction import LANE_SUM_CYCLES
from weft.cost.rules.row_threads import matrix_vector_cycles
from weft.targets import Target

PANEL_VECTORS: Final = 4
"""The most vectors in a row of a panel, and of a register tile, which goes along one."""

WITHOUT_LOADS: Final = 0.75
"""The part of the time of a multiply-add that does not depend on the loads for it, in the largest tile of AVX-512."""

LOAD_TIME: Final = 0.6
"""The time of a load for each multiply-add. With 32 registers a vector takes 1.02 in panels three wide, 1.09 in two and 1.37 in
one, relative to four wide, as measured on both machines. With 16 a tile four wide has two rows: 64 rows times 1024 x 1024 took
1.12 of the time of tiles of 4 rows three wide, and of 6 rows two wide (Zen 4 held to AVX2, 2026-11-28)."""

FEWEST_ROWS: Final = 192
"""Rows from which on a matrix that is not constant is packed: with fewer, each of its elements is used too seldom."""

FEWEST_ROWS_PAGES_APART: Final = 64
"""The same for one whose rows share a few sets of the caches, so that those of a panel evict one another."""

FEWEST_ROWS_REARRANGED: Final = 4
"""The same for a matrix that is rearranged anyhow, which packing then does on the way."""

FEWEST_ROWS_UNTRANSPOSED: Final = 34
"""The same for a matrix whose columns lie side by side, each the terms of an inner product, if these are many; of few, the lanes
of a sum take most of the time. On one core of Emerald Rapids, 16 rows times 768 x 3072 took 1.1 ms without panels and 1.7 with
them, and 32 rows as long; 8 rows of 12 heads times 64 x 256 took 142 us and 151, 16 took 221 and 192 (2026-11-27)."""

MOST_ROWS_OF_PARAMETER: Final = 8
"""The most rows for which a parameter whose columns lie side by side is multiplied as it lies: panels, which are held beside the
parameter, are hardly faster then, as each element is read from memory and used as seldom (1.07 for 8 rows, 1.26 for 12)."""

TURNED_CYCLES: Final = 2.0
"""Cycles of transposing an element to another place in memory: 0.45 to 0.67 ns on one core of Emerald Rapids."""

STREAMED_ROWS: Final = 1.5
"""How many times as long reading a matrix from memory takes as the left factor, a tile of whose rows are streams of their own."""

HELD_ONCE_TIMES: Final = 1.3
"""The most by which the estimate of a product may be above that of one by panels, where these are held beside a parameter."""

MANY_ROWS: Final = 2 * FEWEST_ROWS
"""The rows that an operand is taken to have where their number is not known."""


@dataclass(frozen=True)
class Panel(Decision):
    """How many columns a panel of a packed matrix has."""

    question = "the width of a matrix's panels"
    columns: int


@dataclass(frozen=True)
class RightOperand(Decision):
    """The form in which a product reads its right-hand matrix: "panels", "rows" as it is, or "untransposed" as it was before.

    "swapped" is the transposed product: the untransposed matrix, as it lies, times panels of the other one.
    """

    question = "the form of a product's right-hand matrix"
    form: str


@dataclass(frozen=True)
class GridOperand(Decision):
    """Whether a product on a grid reads its right-hand matrix in panels; of 16-bit floats, beside a left factor in float32."""

    question = "the form of a right-hand matrix on a grid"
    of_grids = True
    panels: bool


@dataclass(frozen=True)
class TurnedWeight(Decision):
    """Whether the matrix of a matrix-vector product on a grid is transposed, so that the terms of a column are contiguous."""

    question = "transposition of the matrix of a matrix-vector product"
    of_grids = True
    turned: bool


def grid_operand_plans() -> list[Candidate[GridOperand]]:
    """Returns the choices: fragments, and parts in shared memory, are read from factors as they are."""
    return [Candidate(GridOperand(panels=False), 0.0), Candidate(GridOperand(panels=True), 1.0)]


def turned_weight_plans(depth: int, columns: int, bits: int, target: Target) -> list[Candidate[TurnedWeight]]:
    """Returns the choices for a matrix [depth, columns] of elements of *bits*, by cycles."""
    return by_cost(
        [
            Candidate(TurnedWeight(t), matrix_vector_cycles(depth, columns, bits, target, side_by_side=t))
            for t in (False, True)
        ]
    )


def panel_vector_time(vectors: int, target: Target, temporaries: int = 1) -> float:
    """Returns the time of a vector of sums, relative to the least, in panels whose rows have *vectors*.

    It depends on the loads for each multiply-add of the largest tile that fits the registers: the fewer vectors there are, the
    more of it goes into loads of the left factor, and the fewer rows there are, of the right one.
    """
    rows = max(1, (target.isa.vector_registers - temporaries - vectors) // vectors)
    return WITHOUT_LOADS + LOAD_TIME * (rows + vectors) / (rows * vectors)


@dataclass(frozen=True)
class RightProblem:
    """A product of *rows* by a matrix that is no constant, with *depth* terms in each sum; None for numbers that are not known.

    The matrix has so many *columns*, an element *bits*. It may be *rearranged* to the order of rows for this product alone.
    One that *is_parameter* is packed once for many calls, and its panels are held beside it.
    """

    rows: int | None
    depth: int | None
    columns: int | None
    bits: int
    rearranged: bool
    is_parameter: bool = False

    @property
    def is_known(self) -> bool:
        """Tells whether all sizes are known, and none is zero."""
        return bool(self.rows and self.depth and self.columns)

    @property
    def row_bytes(self) -> int:
        """The bytes of a row of the matrix."""
        return (self.columns or 1) * self.bits // 8


def right_operand_plans(forms: Collection[str], p: RightProblem, target: Target) -> list[Candidate[RightOperand]]:
    """Returns the choices among *forms* for the right operand of a product; costs are relative to that of panels."""
    fewest = FEWEST_ROWS if p.row_bytes % target.caches.set_period else FEWEST_ROWS_PAGES_APART
    least = FEWEST_ROWS_REARRANGED if p.rearranged else fewest
    many = MANY_ROWS if p.rows is None else p.rows
    vectors = inf if p.depth is None else max(1, -(-p.depth // target.lanes(p.bits)))
    enough = FEWEST_ROWS_UNTRANSPOSED / (1 + LANE_SUM_CYCLES / vectors)
    if p.is_parameter:
        enough = MOST_ROWS_OF_PARAMETER + 1
    as_rows = many / least if "untransposed" not in forms else max(1.0, many / least)  # by a transposed copy
    costs = {"panels": 1.0, "rows": as_rows, "untransposed": many / enough, "swapped": _swapped_cost(p, target)}
    return by_cost([Candidate(RightOperand(form), cost) for form, cost in costs.items() if form in forms])


def _swapped_cost(p: RightProblem, target: Target) -> float:
    """Returns the time of a transposed product relative to one by panels: either turns the matrices that the other does not.

    The matrix is read again for each panel of the rows, from the third level of cache if it does not fit in the second.
    """
    if not p.rows or not p.depth or not p.columns:
        return inf
    product = multiply_cycles(p.rows * p.depth * p.columns, p.bits, target)
    lanes, nbytes = target.lanes(p.bits), p.depth * p.row_bytes
    panels = -(-p.rows // (PANEL_VECTORS * lanes))
    again = l3_cycles((panels - 1) * nbytes, target) if nbytes > target.caches.l2 else 0.0
    computed = product / filled_part(p.rows, lanes) + p.rows * (p.depth + p.columns) * TURNED_CYCLES + again
    reading = memory_cycles(nbytes, target)
    packed = max(product, reading) if p.is_parameter else product + p.depth * p.columns * TURNED_CYCLES
    return max(computed, STREAMED_ROWS * reading) / packed / (HELD_ONCE_TIMES if p.is_parameter else 1.0)
