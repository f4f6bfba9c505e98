"""Dot products of bytes and of bf16: tiles of one instruction of the target, and loops where it has none."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from tests.schedule.compiling import HERE
from tests.schedule.running import same_results
from tests.support.jit import load

from weft.cost import Choosing, DotInstruction, TileProblem, tile_cycles, tile_plans
from weft.loop import Program
from weft.lower import lower
from weft.ops import OPERATORS
from weft.schedule import schedule_program
from weft.schedule.rules import apply_plan, carry_out
from weft.support.dtypes import DType, i8, i16, i32, u8
from weft.targets import Target, can_run, cpu
from weft.targets.instructions import group_of
from weft.te import compute, placeholder, to_program

WITHOUT_VNNI = cpu("avx2").having(features=tuple(f for f in cpu("avx2").isa.features if f != "+avxvnni"))
VNNI = cpu("avx512").having(features=tuple(sorted({*cpu("avx512").isa.features, "+avx512vnni"})))


def product(rows: int, groups: int, panels: int, block: int, columns: int, kind: DType = u8) -> Program:
    """The product of bytes, or of wide rows and bytes, with an epilogue that scales and adds."""
    terms = group_of(kind)
    a, b = placeholder((rows, groups * terms), kind, "a"), placeholder((panels, groups, block, terms), i8, "b")
    c = placeholder((columns,), i32, "c")
    (y,) = OPERATORS["matmul_grouped"]([a, b], {"columns": columns})
    z = compute((rows, columns), lambda i, j: y[i, j] * 3 + c[j], "z")
    return to_program([a, b, c], [z], "product")


def arrays(program: Program, seed: int = 0) -> list[Any]:
    rng = np.random.default_rng(seed)
    found = []
    for p in program.functions[0].params:
        low, high = p.dtype.int_range if p.dtype is not i32 else (-1000, 1000)
        found.append(rng.integers(low, high + 1, [int(str(s)) for s in p.shape]).astype(p.dtype.numpy))  # type: ignore[union-attr]
    return found


def wanted(a: Any, b: Any, c: Any) -> Any:
    panels, groups, block, group = b.shape
    matrix = b.transpose(1, 3, 0, 2).reshape(groups * group, panels * block)[:, : len(c)]
    return a.astype(np.int32) @ matrix.astype(np.int32) * 3 + c


@pytest.mark.parametrize(
    "target", [VNNI, cpu("avx2"), WITHOUT_VNNI, cpu("sse4")], ids=["vnni", "avx2", "pairs", "sse4"]
)
@pytest.mark.parametrize(("rows", "groups", "panels", "columns"), [(1, 3, 2, 60), (7, 5, 1, 17), (13, 1, 3, 90)])
def test_the_schedule_computes_what_the_formula_says(
    target: Target, rows: int, groups: int, panels: int, columns: int
) -> None:
    program = product(rows, groups, panels, 32, columns)
    s = schedule_program(program, target)
    assert ("x86.dot_u8i8" in str(s.program)) == (target.name != "cpu -mattr=sse4")
    same_results(program, s.program)


@pytest.mark.parametrize("machine", [HERE, *[t for t in (WITHOUT_VNNI,) if can_run(t)]])
@pytest.mark.parametrize(("rows", "groups", "panels", "columns"), [(1, 40, 2, 128), (37, 64, 3, 150), (64, 20, 1, 64)])
@pytest.mark.parametrize(("kind", "extreme"), [(u8, 255), (i16, -32768)])
def test_machine_code_adds_bytes_exactly(
    machine: Target, rows: int, groups: int, panels: int, columns: int, kind: DType, extreme: int
) -> None:
    program = product(rows, groups, panels, 64, columns, kind)
    given = arrays(program)
    for is_extreme in (False, True):
        if is_extreme:  # a saturating instruction would lose these
            given[0][:], given[1][:] = extreme, -128
        load(lower(schedule_program(program, machine).program, HERE, verify=True), HERE)[1](*given)
        np.testing.assert_array_equal(given[3], wanted(*given[:3]))


def test_what_converts_rows_and_columns_favours_tiles_with_several_of_both() -> None:
    plain = TileProblem(row=64, column=4, last=32, depth=256, element_bytes=4, right_bytes=1 << 18, cycles=8 / 3)
    taken_apart = replace(plain, conversions=3, row_conversions=2, temporaries=6)
    best = min(tile_plans(taken_apart, WITHOUT_VNNI), key=lambda c: c.cycles).decision
    assert (best.rows, best.sums(8) // best.rows) == (3, 2)
    dearer = replace(taken_apart, conversions=4), replace(taken_apart, row_conversions=3)
    costs = [tile_cycles(p, best, WITHOUT_VNNI) for p in (taken_apart, *dearer)]
    assert costs[0] < min(costs[1:])


def test_narrow_columns_stay_in_the_first_level_of_cache_where_wide_ones_do_not() -> None:
    wide = TileProblem(row=28, column=16, last=8, depth=576, element_bytes=4, right_bytes=1 << 17, outer_row=28)
    narrow = replace(wide, cycles=4 / 3, conversions=1, right_part=0.5)
    machine = WITHOUT_VNNI.having(l1=32 << 10)
    best = min(tile_plans(narrow, machine), key=lambda c: c.cycles).decision
    assert best.columns == 2
    assert tile_cycles(narrow, best, machine) < tile_cycles(replace(narrow, right_part=1.0), best, machine)


def test_wide_rows_have_an_instruction() -> None:
    s = schedule_program(product(12, 40, 2, 16, 32, i16), WITHOUT_VNNI)
    assert "x86.dot_i16i8_8x2" in str(s.program)


def test_the_instruction_is_a_decision() -> None:
    program, planner = product(8, 4, 1, 64, 64), Choosing(VNNI)
    s = carry_out(program, planner)
    (asked,) = [q for q in planner.questions if isinstance(q.chosen.decision, DotInstruction)]
    assert asked.chosen.decision.name == "x86.dot_u8i8_16x4"
    names = [c.decision.name for c in asked.candidates]
    assert names == ["x86.dot_u8i8_16x4", "x86.dot_u8i8_16x4_pairs", ""]
    assert str(apply_plan(program, planner.plan).program) == str(s.program)
    questions = [q for q in planner.questions if "register tile" in q.chosen.decision.question]
    assert len(questions[0].candidates) > 10, "tiles are open to a search"


@pytest.mark.parametrize(("block", "kind"), [(24, u8), (64, i8)])
def test_other_panels_and_signs_have_loops(block: int, kind: DType) -> None:
    program = product(3, 2, 2, block, 40, kind)
    s = schedule_program(program, VNNI)
    assert "x86.dot" not in str(s.program)
    same_results(program, s.program)


def test_columns_of_an_instruction_are_in_one_panel() -> None:
    """A block of eight output channels is two panels of weights, each narrower than a vector of sums."""
    x, w = placeholder((1, 2, 4, 4, 8), u8, "x"), placeholder((4, 2, 1, 1, 2, 4, 4), i8, "w")
    program = to_program([x, w], OPERATORS["conv2d_grouped"]([x, w], {"panels": 2}), "conv")
    s = schedule_program(program, WITHOUT_VNNI)
    assert "x86.dot" not in str(s.program)
    same_results(program, s.program)


def test_slow_instructions_have_tiles_with_room_for_their_temporaries() -> None:
    plain = TileProblem(row=64, column=1, last=16, depth=64, element_bytes=4, right_bytes=1 << 12)
    slow = TileProblem(
        row=64, column=1, last=16, depth=64, element_bytes=4, right_bytes=1 << 12, cycles=4, temporaries=6
    )
    machine = cpu("avx2")
    most = [max(c.decision.sums(8) for c in tile_plans(p, machine)) for p in (plain, slow)]
    assert most[1] < most[0]
    assert min(c.cycles for c in tile_plans(slow, machine)) > 2 * min(c.cycles for c in tile_plans(plain, machine))
