"""How matrices are cut in panels for products, and from how many rows of the other operand on packing pays.

The figures were fitted on one core of a server of Intel's Emerald Rapids kind and on one of AMD's Zen 4, 2026-11-22
(docs/design/0014 and 0041).
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from typing import Final

from weft.cost.plans.plan import Candidate, Decision
from weft.cost.plans.planner import by_cost
from weft.cost.rules.row_threads import matrix_vector_cycles
from weft.targets import Target

VECTOR_TIMES: Final = {4: 1.0, 3: 1.02, 2: 1.08, 1: 1.35}
"""The time of a vector by the number of vectors in a row of a panel: the fewer there are, the more of it goes into loads."""

PANEL_VECTORS: Final = max(VECTOR_TIMES)
"""The most vectors in a row of a panel, and of a register tile, which goes along one."""

UNKNOWN_VECTORS: Final = 2 * PANEL_VECTORS
"""Vectors of the longest row of a matrix of unknown width that counts."""

FEWEST_ROWS: Final = 192
"""Rows from which on a matrix that is not constant is packed: with fewer, each of its elements is used too seldom."""

FEWEST_ROWS_PAGES_APART: Final = 64
"""The same for one whose rows share a few sets of the caches, so that those of a panel evict one another."""

FEWEST_ROWS_REARRANGED: Final = 4
"""The same for a matrix that is rearranged anyhow, which packing then does on the way."""

MANY_ROWS: Final = 2 * FEWEST_ROWS
"""The rows that an operand is taken to have where their number is not known."""


@dataclass(frozen=True)
class Panel(Decision):
    """How many columns a panel of a packed matrix has."""

    question = "the width of a matrix's panels"
    columns: int


@dataclass(frozen=True)
class RightOperand(Decision):
    """The form in which a product reads its right-hand matrix: "panels", "rows" as it is, or "untransposed" as it was before."""

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


def panel_plans(columns: int | None, lanes: int) -> list[Candidate[Panel]]:
    """Returns the widths of panels, by the time of all panels, padding included; few columns have panels of a power of two.

    Where it is not known how many there are, None, the time is the mean of that of some numbers.
    """
    if columns is not None and columns <= lanes:
        return [Candidate(Panel(1 << (columns - 1).bit_length()), 1.0)]
    vectors = [-(-columns // lanes)] if columns is not None else range(1, UNKNOWN_VECTORS + 1)

    def time(v: int) -> float:
        return sum(-(-n // v) for n in vectors) / len(vectors) * v * VECTOR_TIMES[v]

    return by_cost([Candidate(Panel(lanes * v), time(v)) for v in VECTOR_TIMES])


def right_operand_plans(
    forms: Collection[str], rows: int | None, row_bytes: int, target: Target, *, rearranged: bool
) -> list[Candidate[RightOperand]]:
    """Returns the choices among *forms* for a left operand of *rows*, None for many, and a right one whose rows have *row_bytes*.

    Where the right operand is *rearranged* to that order only, packing replaces that. Costs are relative to that of panels.
    """
    fewest = FEWEST_ROWS if row_bytes % target.caches.set_period else FEWEST_ROWS_PAGES_APART
    least = FEWEST_ROWS_REARRANGED if rearranged else fewest
    many = MANY_ROWS if rows is None else rows
    costs = {"panels": 1.0, "rows": many / least, "untransposed": many / least * many / FEWEST_ROWS_REARRANGED}
    return by_cost([Candidate(RightOperand(form), cost) for form, cost in costs.items() if form in forms])
