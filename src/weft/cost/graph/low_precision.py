"""How products of bytes are computed, and where weights of few bits are dequantised (docs/design/0044).

Costs are in multiply-adds of a vector of floats, unless a function says otherwise.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import Final

from weft.cost.demand import fma_cycles
from weft.cost.graph.arithmetic import multiply_cycles
from weft.cost.graph.memory import streaming_cycles
from weft.cost.graph.packing import MANY_ROWS, PANEL_VECTORS, Panel, panel_vector_time
from weft.cost.graph.panel_width import PanelProblem, panel_plans
from weft.cost.plans.plan import Candidate, Decision
from weft.cost.plans.planner import best_of_each, by_cost
from weft.cost.rules.fragment_tile import FragmentProduct, fragment_tile_plans
from weft.cost.rules.matrix_tiles import MatrixTileProblem, matrix_tile_plans
from weft.cost.rules.row_threads import matrix_vector_cycles
from weft.cost.rules.shared_tile import GLOBAL_CYCLES, plain_product, shared_tile_plans
from weft.support.dtypes import DType, bf16, f32, i8, i32
from weft.targets import Target
from weft.targets.instructions import DotProduct, dot_products, group_of

GROUPING_CYCLES: Final = 0.5
"""The time of packing a byte in groups of neighbours: half a cycle of an Intel server (docs/design/0044). On a busy core of one
with AVX-512, `pack_matrix_groups` of 1024 x 1024 took 0.34 ns a byte, about a cycle (2026-11-24)."""

WIDENED_TIME: Final = 2.0
"""The time of a multiply-add of bytes that are converted to integers of 32 bits. Of 256 cubed, `matmul` of such ran at 81 x 10^9
operations a second where `matmul_packed` of floats ran at 195, 2.4 times as many (an Intel server, AVX-512, 2026-11-24)."""

PANEL_VECTORS_OF_FEW_BITS: Final = 2
"""The most vectors in a row of a panel of weights of few bits: a wider one, taken apart in floats, would not stay in cache."""

TAKING_APART: Final = 4
"""Operations that make a vector of floats of weights in bytes, such as conversions and a scale: counted, not measured."""

WIDENING_OPERATIONS: Final = 1
"""Operations that make a vector of floats of one of bf16, beside its load: a shift. Halves of IEEE 754 are converted by their
load. By whole panels the products of a BERT of 128 rows by bf16 take 0.91 of the time, those by f16 would take 1.05 (Zen 4 held
to AVX2, 2026-11-28)."""

ROUNDED: Final = 2
"""Operations for each element that is rounded to bf16: it is converted, and stored beside its float32: counted, not measured."""

ROUNDING_CYCLES: Final = 1750.0
"""Cycles of the kernel that rounds a left factor, beside its elements: of 128 x 768, to bf16 it took 0.62 us, and to tf32 1.32 us
(H200, 2026-11-26). Products that share the factor share it, too, which is not counted."""

STORED_AND_LOADED: Final = 2
"""Operations for each vector of weights that is taken apart beforehand: it is stored, and loaded again."""


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
class NarrowFactors(Decision):
    """The form of a contraction of floats whose factors may be rounded to bf16: the columns of a *panel*, 0 to keep float32."""

    question = "the form of a product whose factors may be bf16"
    panel: int = 0


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


def low_bit_panel_plans(columns: int, target: Target) -> list[Candidate[Panel]]:
    """Returns the widths of panels of weights of few bits, the narrow ones of `panel_plans`."""
    most = PANEL_VECTORS_OF_FEW_BITS * target.lanes(f32.bits)
    return [c for c in panel_plans(PanelProblem(columns, f32.bits), target) if c.decision.columns <= most]


def narrow_weight_plans(rows: int | None, size: int, target: Target) -> list[Candidate[NarrowWeight]]:
    """Returns both choices for a product of *rows*, None for many, with *size* weights, by cycles: reading, and computing."""
    many, tiles = _rows_and_tiles(rows, target)
    work = multiply_cycles(size, f32.bits, target)
    kept = streaming_cycles(size, target) + work * (many + tiles * TAKING_APART)
    folded = streaming_cycles(size * f32.bytes, target) + work * many
    return by_cost([Candidate(NarrowWeight(kept=False), folded), Candidate(NarrowWeight(kept=True), kept)])


def taken_apart_plans(rows: int | None, target: Target, operations: int = TAKING_APART) -> list[Candidate[TakenApart]]:
    """Returns both choices for a product of *rows*, None for many, by the *operations* for each vector of weights.

    Where weights are multiplied, each tile of rows takes them apart.
    """
    _, tiles = _rows_and_tiles(rows, target)
    return by_cost(
        [
            Candidate(TakenApart(by_panels=False), float(tiles * operations)),
            Candidate(TakenApart(by_panels=True), float(operations + STORED_AND_LOADED)),
        ]
    )


def _rows_and_tiles(rows: int | None, target: Target) -> tuple[int, int]:
    """Returns a number of *rows*, None for many, and how many register tiles they are cut in, of two vectors of columns."""
    many = MANY_ROWS if rows is None else rows
    return many, -(-many // (target.isa.vector_registers // PANEL_VECTORS_OF_FEW_BITS))


def grouped_plans(
    rows: int | None, columns: int, target: Target, *, is_packed: bool
) -> list[Candidate[GroupedOperands]]:
    """Returns the forms of a contraction of bytes of *rows*, None for many, by the time for each term of all columns.

    Packing counts unless the right factor *is_packed* while compiling.
    """
    many = MANY_ROWS if rows is None else rows
    lanes = target.lanes(i32.bits)
    found = [Candidate(GroupedOperands(), many * columns * WIDENED_TIME / lanes)]
    packing = 0.0 if is_packed else GROUPING_CYCLES * columns
    for shape in dot_products(target).values():
        if shape.sums is not i32 or shape.b.bytes > 1:
            continue
        for v in range(PANEL_VECTORS, 0, -1):
            time = panel_vector_time(v, target, 1 + shape.temporaries)
            wide = -(-columns // (v * lanes)) * v * lanes
            each = many * wide * time * _vector_time(shape, many, v, target) / (lanes * shape.group)
            form = GroupedOperands(str(shape.a), str(shape.b), shape.group, v * lanes)
            found.append(Candidate(form, each + packing + (0.0 if shape.a.bytes == 1 else many * WIDENED_TIME / lanes)))
    return best_of_each(found)


def _vector_time(shape: DotProduct, rows: int, vectors: int, target: Target) -> float:
    """Returns the time of a vector of sums in a tile of *vectors* and as many of the *rows* as fit, with that of conversions."""
    most = (target.isa.vector_registers - 1 - shape.temporaries - vectors) // vectors
    return shape.cycles + shape.column_operations / max(1, min(rows, most)) + shape.row_operations / vectors


@dataclass(frozen=True)
class FloatProduct:
    """A product of float32: *rows*, None for many, of *depth* terms, by so many *columns*.

    Where the right factor *is_packed* while compiling, it is read from memory for each call, else packed in each.
    """

    rows: int | None
    depth: int
    columns: int
    is_packed: bool = True


@dataclass(frozen=True)
class RoundedFactors(Decision):
    """Whether the factors of a product of float32 on a grid are rounded, and multiplied as they lie."""

    question = "rounding of a product's factors on a grid"
    of_grids = True
    rounded: bool


def rounded_factor_plans(p: FloatProduct, target: Target, factors: DType = bf16) -> list[Candidate[RoundedFactors]]:
    """Returns the forms of a product on a grid, by the cycles of all threads, those of rounding factors included.

    Factors are rounded to bf16, or to tf32, whose bits are 32-bit integers.
    """
    if p.rows == 1 and p.is_packed:
        return _rounded_vector_plans(p, target, factors)
    many = MANY_ROWS if p.rows is None else p.rows
    wide = min([c.cycles for c in shared_tile_plans(plain_product(many, p.columns, 1, p.depth), target)])
    found = [Candidate(RoundedFactors(rounded=False), wide)]
    if p.rows is not None and (p.is_packed or factors is not bf16):
        tiles = fragment_tile_plans(FragmentProduct(p.rows, p.columns, 1, p.depth, p.depth, factors), target)
        best = min([c.cycles for c in tiles if c.decision.warps], default=None)
        if best is not None:
            rounded = p.rows * p.depth + (0 if p.is_packed else p.depth * p.columns)
            launch = 0.0 if target.grid is None else ROUNDING_CYCLES * target.grid.lanes * target.grid.multiprocessors
            found.append(Candidate(RoundedFactors(rounded=True), best + launch + rounded * 2 * GLOBAL_CYCLES))
    return by_cost(found)


def _rounded_vector_plans(p: FloatProduct, target: Target, factors: DType) -> list[Candidate[RoundedFactors]]:
    """Returns the forms of a constant matrix times a vector, by cycles of the device: those of reading the matrix."""
    cycles = partial(matrix_vector_cycles, p.depth, p.columns, target=target)
    wide = min(cycles(f32.bits, side_by_side=t) for t in (False, True))
    found = [Candidate(RoundedFactors(rounded=False), wide)]
    if factors is bf16:
        found.append(Candidate(RoundedFactors(rounded=True), cycles(bf16.bits, side_by_side=True)))
    return by_cost(found)


@dataclass(frozen=True)
class ByteProduct:
    """A product of bytes: *rows*, None for many, of *depth* terms, by so many *columns*.

    Where the right factor `is_turned`, the terms of each column lie side by side, as fragments take them.
    """

    rows: int | None
    depth: int
    columns: int
    is_turned: bool


@dataclass(frozen=True)
class ByteFragments(Decision):
    """Whether bytes are *multiplied* on a grid as they are, in fragments, or as integers of 32 bits."""

    question = "the form of a product of bytes on a grid"
    of_grids = True
    multiplied: bool


def byte_fragment_plans(p: ByteProduct, target: Target) -> list[Candidate[ByteFragments]]:
    """Returns the forms of a product of bytes on a grid, by the cycles of all threads, those of turning a factor included."""
    many = MANY_ROWS if p.rows is None else p.rows
    wide = min([c.cycles for c in shared_tile_plans(plain_product(many, p.columns, 1, p.depth), target)])
    found = [Candidate(ByteFragments(multiplied=False), wide)]
    if p.rows is not None:
        tiles = fragment_tile_plans(FragmentProduct(p.rows, p.columns, 1, p.depth, p.depth, i8), target)
        best = min([c.cycles for c in tiles if c.decision.warps], default=None)
        if best is not None:
            turning = 0.0 if p.is_turned else p.depth * p.columns * 2 * GLOBAL_CYCLES
            found.append(Candidate(ByteFragments(multiplied=True), best + turning))
    return by_cost(found)


def narrow_factor_plans(p: FloatProduct, target: Target) -> list[Candidate[NarrowFactors]]:
    """Returns the forms of a product whose factors may be rounded to bf16, by cycles on one core, those of rounding included."""
    many, size = MANY_ROWS if p.rows is None else p.rows, p.depth * p.columns
    wide = max(multiply_cycles(many * size, f32.bits, target), _reading(p, f32, target))
    found = [Candidate(NarrowFactors(), wide)]
    if p.depth % group_of(bf16):
        return found
    rounding = multiply_cycles(many * p.depth * ROUNDED, f32.bits, target)
    packing = 0.0 if p.is_packed else GROUPING_CYCLES * bf16.bytes * size
    for v in range(PANEL_VECTORS, 0, -1):
        panel = v * target.lanes(f32.bits)
        work = _narrow_cycles(p, many, panel, target)
        if work is not None:
            found.append(Candidate(NarrowFactors(panel), max(work, _reading(p, bf16, target)) + rounding + packing))
    return by_cost(found)


def _reading(p: FloatProduct, dtype: DType, target: Target) -> float:
    """Returns the cycles of reading the right factor as *dtype*; those of other layers have been read since the last call."""
    return streaming_cycles(p.depth * p.columns * dtype.bytes, target, others=target.caches.l3) if p.is_packed else 0.0


def _narrow_cycles(p: FloatProduct, rows: int, panel: int, target: Target) -> float | None:
    """Returns the cycles of products of bf16 in panels, by vectors or in matrix registers; None where the machine has neither."""
    kinds, groups, panels = (bf16, bf16, f32), p.depth // group_of(bf16), -(-p.columns // panel)
    vectors = [s for s in dot_products(target).values() if (s.a, s.b, s.sums) == kinds]
    tiles = MatrixTileProblem(*kinds, rows, panels, panel, groups, groups, 1, p.depth * bf16.bytes)
    found = [c.cycles for c in matrix_tile_plans(tiles, target) if c.decision.rows]
    lanes = target.lanes(f32.bits)
    time = panel_vector_time(panel // lanes, target)
    found += [fma_cycles(rows * groups * panels * panel // lanes * s.cycles * time, target) for s in vectors]
    return min(found, default=None)
