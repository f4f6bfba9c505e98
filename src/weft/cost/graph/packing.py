"""How matrices are cut in panels for products, and from how many rows of the other operand on packing pays.

The figures were fitted on one core of a server of Intel's Emerald Rapids kind and on one of AMD's Zen 4, 2026-11-22
(docs/design/0014 and 0041).
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from typing import Final

from weft.cost.graph.arithmetic import multiply_cycles
from weft.cost.graph.memory import streaming_cycles
from weft.cost.plans.plan import Candidate, Decision
from weft.cost.plans.planner import by_cost
from weft.support.dtypes import f32, i32
from weft.targets import Target
from weft.targets.instructions import dot_products

VECTOR_TIMES: Final = {4: 1.0, 3: 1.02, 2: 1.08, 1: 1.35}
"""The time of a vector by the number of vectors in a row of a panel: the fewer there are, the more of it goes into loads."""

PANEL_VECTORS: Final = max(VECTOR_TIMES)
"""The most vectors in a row of a panel, and of a register tile, which goes along one."""

FEWEST_ROWS: Final = 192
"""Rows from which on a matrix that is not constant is packed: with fewer, each of its elements is used too seldom."""

FEWEST_ROWS_PAGES_APART: Final = 64
"""The same for one whose rows share a few sets of the caches, so that those of a panel evict one another."""

FEWEST_ROWS_REARRANGED: Final = 4
"""The same for a matrix that is rearranged anyhow, which packing then does on the way."""


@dataclass(frozen=True)
class Panel(Decision):
    """How many columns a panel of a packed matrix has."""

    question = "the width of a matrix's panels"
    columns: int


GROUPING_CYCLES: Final = 0.5
"""Cycles that packing a byte in groups of neighbours takes while a model runs."""

BYTE_CYCLES: Final = 2.0
"""The time of a multiply-add of integers in 32 bits, as a multiple of one of floats, conversions of bytes included."""


MOST_TAKEN_APART: Final = 2
"""Vectors in a row of a panel of weights of few bits."""

TAKING_APART: Final = 4
"""Operations that make a vector of floats of weights in bytes: a conversion of width, one to floats, a scale."""


@dataclass(frozen=True)
class NarrowWeight(Decision):
    """Whether a quantised weight of floats is *kept* as it is, and dequantised by the kernel that multiplies by it."""

    question = "the place where a weight is dequantised"
    kept: bool


@dataclass(frozen=True)
class TakenApart(Decision):
    """Where weights of few bits are taken apart: by whole panels, before they are multiplied, or where they are multiplied."""

    question = "the place where weights are taken apart"
    by_panels: bool


@dataclass(frozen=True)
class GroupedOperands(Decision):
    """The form of a contraction of bytes: the types of its factors, the terms of a *group*, and the columns of a *panel*.

    With a group of 0 it is computed in 32 bits as it is.
    """

    question = "the form of a product of bytes"
    left: str = ""
    right: str = ""
    group: int = 0
    panel: int = 0


@dataclass(frozen=True)
class RightOperand(Decision):
    """The form in which a product reads its right-hand matrix: "panels", "rows" as it is, or "untransposed" as it was before."""

    question = "the form of a product's right-hand matrix"
    form: str


def panel_plans(columns: int, lanes: int) -> list[Candidate[Panel]]:
    """Returns the widths of panels, by the time of all panels, padding included; few columns have panels of a power of two."""
    if columns <= lanes:
        return [Candidate(Panel(1 << (columns - 1).bit_length()), 1.0)]
    return by_cost(
        [Candidate(Panel(lanes * v), -(-columns // (v * lanes)) * v * VECTOR_TIMES[v]) for v in VECTOR_TIMES]
    )


def low_bit_panel_plans(columns: int, lanes: int) -> list[Candidate[Panel]]:
    """Returns the widths of panels of weights of few bits: a wide one, taken apart, would not stay in cache."""
    return [c for c in panel_plans(columns, lanes) if c.decision.columns <= MOST_TAKEN_APART * lanes]


def narrow_weight_plans(rows: int | None, size: int, target: Target) -> list[Candidate[NarrowWeight]]:
    """Returns both choices for a product of *rows*, None for many, with a weight of *size* bytes: reading it, and computing."""
    many = 2 * FEWEST_ROWS if rows is None else rows
    tiles = -(-many // (target.isa.vector_registers // 2))
    work = multiply_cycles(size, f32.bits, target)
    kept = streaming_cycles(size, target) + work * (many + tiles * TAKING_APART)
    folded = streaming_cycles(size * f32.bytes, target) + work * many
    return by_cost([Candidate(NarrowWeight(kept=False), folded), Candidate(NarrowWeight(kept=True), kept)])


def taken_apart_plans(rows: int | None, target: Target) -> list[Candidate[TakenApart]]:
    """Returns both choices for a product of *rows*, None for many, by the operations for each vector of weights.

    A panel is stored and loaded once more; otherwise each tile of rows takes the weights apart.
    """
    many = 2 * FEWEST_ROWS if rows is None else rows
    tiles = -(-many // (target.isa.vector_registers // 2))
    return by_cost(
        [
            Candidate(TakenApart(by_panels=False), float(tiles * TAKING_APART)),
            Candidate(TakenApart(by_panels=True), float(TAKING_APART + 2)),
        ]
    )


def grouped_plans(
    rows: int | None, columns: int, target: Target, *, is_packed: bool
) -> list[Candidate[GroupedOperands]]:
    """Returns the forms of a contraction of bytes of *rows*, None for many, by the cycles for each term of a column.

    Packing counts unless the right factor *is_packed* while compiling.
    """
    many = 2 * FEWEST_ROWS if rows is None else rows
    lanes = target.lanes(i32.bits)
    found = [Candidate(GroupedOperands(), many * columns * BYTE_CYCLES / lanes)]
    for i in dot_products(target):
        shape = i.dot
        if shape is None or shape.sums is f32:
            continue
        for v, time in VECTOR_TIMES.items():
            wide = -(-columns // (v * lanes)) * v * lanes
            each = many * wide * time * shape.cycles / (lanes * shape.group)
            form = GroupedOperands(str(shape.a), str(shape.b), shape.group, v * lanes)
            found.append(Candidate(form, each + (0.0 if is_packed else GROUPING_CYCLES * columns)))
    return list({c.decision: c for c in reversed(by_cost(found))}.values())[::-1]


def right_operand_plans(
    forms: Collection[str], rows: int | None, row_bytes: int, target: Target, *, rearranged: bool
) -> list[Candidate[RightOperand]]:
    """Returns the choices among *forms* for a left operand of *rows*, None for many, and a right one whose rows have *row_bytes*.

    Where the right operand is *rearranged* to that order only, packing replaces that. Costs are relative to that of panels.
    """
    fewest = FEWEST_ROWS if row_bytes % target.caches.set_period else FEWEST_ROWS_PAGES_APART
    least = FEWEST_ROWS_REARRANGED if rearranged else fewest
    many = 2 * FEWEST_ROWS if rows is None else rows
    costs = {"panels": 1.0, "rows": many / least, "untransposed": many / least * many / FEWEST_ROWS_REARRANGED}
    return by_cost([Candidate(RightOperand(form), cost) for form, cost in costs.items() if form in forms])
