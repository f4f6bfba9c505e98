"""`tensorize`: a block becomes an instruction, if it computes just that."""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from tests.schedule.compiling import check_compiled
from tests.schedule.products import packed, product, tiled
from tests.schedule.programs import Case
from tests.schedule.random_steps import step
from tests.schedule.running import check, refusal, same_results, transition

from weft import te
from weft.codegen.interp import run
from weft.driver.function import build_function
from weft.ir import cast
from weft.loop import For, Program, parse_program, statements, verify
from weft.lower import lower
from weft.schedule import LoopRef, Schedule
from weft.support.dtypes import bf16, i8, i32, u8
from weft.support.errors import ScheduleError
from weft.targets import cpu, host

VNNI, SHORT = "x86.dot_u8i8_16x4", "x86.dot_u8i8_8x4"
UNIT = "gemm_unit.multiply"


def scheduled(case: Case, columns: int, group: int, intrinsic: str) -> Schedule:
    """Packs, starts the sums apart, and tensorizes."""
    s = Schedule(case.program)
    block, j1 = packed(s, columns, group)
    assert s.tensorize(j1, intrinsic) == block
    return s


def test_a_dot_product(golden: Callable[[str], None]) -> None:
    case = product(4, 32, 8)
    s = Schedule(case.program)
    _, j1 = packed(s, 16, 4)
    before = s.program
    s.tensorize(j1, VNNI)
    check(case, s.program)
    golden(transition(before, s.program))


@pytest.mark.parametrize(
    ("intrinsic", "a", "b", "columns", "group"),
    [
        (VNNI, u8, i8, 16, 4),
        (SHORT, u8, i8, 8, 4),
        ("arm.dot_i8i8_4x4", i8, i8, 4, 4),
        ("x86.dot_bf16_16x2", bf16, bf16, 16, 2),
        ("x86.dot_bf16_8x2", bf16, bf16, 8, 2),
    ],
)
def test_every_dot_product(intrinsic: str, a: Any, b: Any, columns: int, group: int) -> None:
    case = product(3, 2 * columns, 3 * group, a, b)
    check(case, scheduled(case, columns, group, intrinsic).program)


def test_the_order_of_loops_and_of_factors_is_free() -> None:
    case = product(4, 32, 8, swapped=True)
    s = Schedule(case.program)
    block, j1 = packed(s, 16, 4)
    *_, k1 = s.loops(block)
    s.reorder([k1, j1])
    s.tensorize(k1, VNNI)
    check(case, s.program)


def test_a_block_that_was_made_before_keeps_its_name_and_its_start() -> None:
    case = product(4, 32, 8)
    s = Schedule(case.program)
    _, j1 = tiled(s, 16, 4)
    s.pack(s.block("C"), "B", "k, j -> j // 16, k // 4, j % 16, k % 4", "local")
    outer = s.blockize(j1)
    assert s.tensorize(outer, VNNI) == outer
    assert "C_init" in [b.name for b in s.blocks()]
    check(case, s.program)


def test_a_copy() -> None:
    case = product(4, 32, 8)
    s = Schedule(case.program)
    copy = s.pack(s.block("C"), "B", "k, j -> j // 16, k // 4, j % 16, k % 4", "local")
    s.tensorize(s.loops(copy)[2], "interleave_i8_16x4")
    check(case, s.program)


def test_rows_with_a_remainder() -> None:
    case = product(5, 32, 8)
    s = Schedule(case.program)
    block, j1 = packed(s, 16, 4)
    s.split(s.loops(block)[0], [None, 2])
    s.tensorize(j1, VNNI)
    check(case, s.program)


def registers(case: Case, rows: int = 2) -> Schedule:
    """A whole kernel: tiles of C in registers, panels of B packed by an instruction of their own."""
    s = Schedule(case.program)
    block = s.block("C")
    out = s.cache_write(block, "register")
    i, j = s.loops(out)
    i0, i1 = s.split(i, [None, rows])
    j0, j1 = s.split(j, [None, 32])
    s.reorder([j0, i0, i1, j1])
    s.compute_at(block, i0)
    panel = s.pack(block, "B", "k, j -> j // 16, k // 4, j % 16, k % 4", "local")
    s.compute_at(panel, j0)
    *_, ti, tj, tk = s.loops(block)
    tj0, tj1 = s.split(tj, [None, 16])
    tk0, tk1 = s.split(tk, [None, 4])
    s.reorder([tk0, ti, tj0, tj1, tk1])
    s.decompose_reduction(block, tk0)
    s.tensorize(s.loops(panel)[-2], "interleave_i8_16x4")
    s.tensorize(tj1, VNNI)
    return s


@pytest.mark.parametrize("level", [0, 1])
def test_loops_around_it_run_in_parallel(level: int) -> None:
    case = product(5, 64, 8)
    s = registers(case)
    s.parallel(s.loops(s.block("C_write"))[level])
    check(case, s.program)


def test_it_is_put_into_a_parallel_loop() -> None:
    case = product(4, 32, 8)
    s = Schedule(case.program)
    block, j1 = packed(s, 16, 4)
    s.parallel(s.loops(block)[0])
    s.tensorize(j1, VNNI)
    check(case, s.program)


def test_the_sum_is_no_parallel_loop() -> None:
    s = scheduled(product(4, 32, 8), 16, 4, VNNI)
    with pytest.raises(ScheduleError, match="the block C combines values along it: its axis vk_o is of kind reduce"):
        s.parallel(s.loops(s.block("C"))[2])


def test_panels_shrink_to_what_is_alive() -> None:
    flat = str(lower(registers(product(5, 64, 8)).program, cpu("avx512")))
    assert "i8[256]" in flat  # 32 columns of 8 rows
    assert "B_packed[ramp(" in flat
    assert "//" not in flat


def check_lowered(case: Case, program: Program) -> None:
    """Runs what a machine with the instruction would be given: lowered everywhere, as machine code where it is one."""
    values = case.arrays(1)
    run(lower(program, cpu("avx512")), [np.ascontiguousarray(v).reshape(-1) for v in values.values()])
    np.testing.assert_array_equal(values["C"], case.expected(values)[0])
    if host().has("avx512vnni"):
        check_compiled(case, program)


@pytest.mark.parametrize("rows", [2, 3, 5])
def test_lowered_programs_compute_the_same(rows: int) -> None:
    case = product(5, 64, 8)
    check_lowered(case, registers(case, rows).program)


@pytest.mark.skipif(not host().has("avx512vnni"), reason="this machine has no VNNI")
def test_machine_code() -> None:
    case = product(13, 96, 40)
    s = registers(case, 6)
    rng = np.random.default_rng(3)
    a, b = rng.integers(0, 256, (13, 40)).astype(np.uint8), rng.integers(-128, 128, (40, 96)).astype(np.int8)
    c = np.zeros((13, 96), np.int32)
    build_function(s.program)(a, b, c)
    np.testing.assert_array_equal(c, a.astype(np.int32) @ b)


def unit_program(n: int = 32) -> tuple[Program, Schedule]:
    """A product on the matrix unit, each operand in the memory that the unit takes it from."""
    x, w = te.placeholder((n, n), i8, "X"), te.placeholder((n, n), i8, "W")
    k = te.reduce_axis(n, "k")
    y = te.compute((n, n), lambda i, j: te.sum_(cast(x[i, k], i32) * cast(w[j, k], i32), [k]), "Y")
    program = te.to_program([x, w], [y])
    s = Schedule(program)
    block = s.block("Y")
    out = s.cache_write(block, "acc")
    s.cache_read(block, "X", "inp")
    s.cache_read(block, "W", "wgt")
    i, j, r = s.loops(block)
    (i0, i1), (j0, j1), (k0, k1) = (s.split(f, [None, 16]) for f in (i, j, r))
    s.reorder([i0, j0, k0, i1, j1, k1])
    clear = s.decompose_reduction(block, k0)
    s.tensorize(i1, UNIT)
    s.tensorize(s.loops(clear)[2], "gemm_unit.clear")
    assert len(s.loops(out)) == 2
    return program, s


def test_a_matrix_unit_with_memories_of_its_own(golden: Callable[[str], None]) -> None:
    program, s = unit_program()
    verify(s.program)
    rng = np.random.default_rng(0)
    a, b = (rng.integers(-128, 128, (32, 32)).astype(np.int8) for _ in range(2))
    results = [np.zeros((32, 32), np.int32) for _ in range(3)]
    run(program, [a, b, results[0]])
    run(s.program, [a, b, results[1]])
    run(lower(s.program, cpu("avx2")), [a.reshape(-1), b.reshape(-1), results[2].reshape(-1)])
    for r in results:
        np.testing.assert_array_equal(r, a.astype(np.int32) @ b.T)
    golden(f"{s}\n")


# -- what is refused ---------------------------------------------------------------------------------------------------


def test_refused_for_an_unpacked_operand(golden: Callable[[str], None]) -> None:
    s = Schedule(product(4, 32, 8).program)
    block, j1 = tiled(s, 16, 4)
    s.decompose_reduction(block, s.loops(block)[2])
    golden(refusal(lambda: s.tensorize(j1, VNNI)))


def test_refused_for_other_loops(golden: Callable[[str], None]) -> None:
    s = Schedule(product(4, 32, 8).program)
    _, j1 = packed(s, 16, 2)
    golden(refusal(lambda: s.tensorize(j1, VNNI)))


def test_refused_for_an_operand_of_another_type(golden: Callable[[str], None]) -> None:
    s = Schedule(product(4, 32, 8, i8, i8).program)
    _, j1 = packed(s, 16, 4)
    golden(refusal(lambda: s.tensorize(j1, VNNI)))


def test_refused_for_what_is_no_instruction(golden: Callable[[str], None]) -> None:
    s = Schedule(product(4, 32, 8).program)
    _, j1 = packed(s, 16, 4)
    golden(refusal(lambda: s.tensorize(j1, "x86.dot")))


def test_refused_for_a_block_without_loops(golden: Callable[[str], None]) -> None:
    s = Schedule(product(4, 32, 8).program)
    golden(refusal(lambda: s.tensorize(s.block("C"), VNNI)))


FORM = """
def main(A: u8[8], B: i8[64], C: i32[{size}], D: i32[16]):
    for i in range(0, 16):
        for k in range(0, 4):
            with block("C", vi=spatial(16, i), vk=reduce(4, k)):
                {statement}
"""


@pytest.mark.parametrize(
    ("statement", "message"),
    [
        (
            "C[vi] = max(C[vi], i32(A[vk]) * i32(B[vi * 4 + vk]))",
            "it computes `C[i] + i32(A[k]) * i32(B[i, k])`, where",
        ),
        (
            "C[vi] = C[vi] + i32(A[vk * 2]) * i32(B[vi * 4 + vk])",
            "the operand A has strides (1), but the block's A has (2): pack it first",
        ),
        (
            "C[vi] = C[vi] + i32(A[vk]) * i32(B[vi + vk * 16])",
            "the operand B has strides (4, 1), but the block's B has (1, 16)",
        ),
        (
            "C[vi] = D[vi] + i32(A[vk]) * i32(B[vi * 4 + vk])",
            "the operand C is `C[i]` in one place and `D[i]` in another",
        ),
        ("C[vi] = C[vi] + i32(A[vk]) * i32(A[vk])", "the operand B is i8, but the block's A is u8"),
        ("C[vi] = C[vi] + i32(A[vk]) * i32(3)", "it computes `i32(B[i, k])`, where the block has `i32(3)`"),
        (
            "C[vi] = C[vi] + i32(A[vk * vk]) * i32(B[vi * 4 + vk])",
            "the index `k * k` of the block's A is not linear in its loops",
        ),
        (
            "C[0] = C[0] + i32(A[vk]) * i32(B[vi * 4 + vk])",
            "index 0 of the operand C moves with i, but the block's `C[0]` does not move with it",
        ),
    ],
)
def test_refused_for_another_formula(statement: str, message: str) -> None:
    s = Schedule(parse_program(FORM.format(size=16, statement=statement)))
    with pytest.raises(ScheduleError, match=r"is not what x86\.dot_u8i8_16x4 computes") as caught:
        s.tensorize(s.loops(s.block("C"))[0], VNNI)
    assert message in str(caught.value)


def test_refused_for_operands_in_one_buffer() -> None:
    text = """
def main(C: i32[48]):
    for i in range(0, 16):
        for k in range(0, 4):
            with block("C", vi=spatial(16, i), vk=reduce(4, k)):
                C[vi] = C[vi] + C[vk + 16] * C[vi + 20]
"""
    s = Schedule(parse_program(text))
    with pytest.raises(ScheduleError, match="is not what"):
        s.tensorize(s.loops(s.block("C"))[0], VNNI)


def test_refused_for_another_memory(golden: Callable[[str], None]) -> None:
    x, w = te.placeholder((16, 16), i8, "X"), te.placeholder((16, 16), i8, "W")
    k = te.reduce_axis(16, "k")
    y = te.compute((16, 16), lambda i, j: te.sum_(cast(x[i, k], i32) * cast(w[j, k], i32), [k]), "Y")
    s = Schedule(te.to_program([x, w], [y]))
    s.cache_write(s.block("Y"), "acc")
    s.cache_read(s.block("Y"), "X", "inp")
    s.decompose_reduction(s.block("Y"), s.loops(s.block("Y"))[0])
    golden(refusal(lambda: s.tensorize(s.loops(s.block("Y"))[0], UNIT)))


def test_the_trace_repeats_it() -> None:
    case = product(5, 64, 8)
    s = registers(case)
    again = Schedule(case.program)
    exec(str(s.trace), {"s": again})
    assert str(again) == str(s)


def test_the_sum_is_started_apart_afterwards() -> None:
    case = product(4, 32, 8)
    s = Schedule(case.program)
    _, j1 = tiled(s, 16, 4)
    s.pack(s.block("C"), "B", "k, j -> j // 16, k // 4, j % 16, k % 4", "local")
    block = s.tensorize(j1, VNNI)
    s.decompose_reduction(block, s.loops(block)[2])
    check(case, s.program)
    check_lowered(case, s.program)


def test_the_memory_of_an_accelerator_is_not_changed_afterwards() -> None:
    _, s = unit_program()
    message = "Y is an instruction, which relies on its operands as they are"
    with pytest.raises(ScheduleError, match=message):
        s.set_scope(s.block("X_inp"), "local")
    with pytest.raises(ScheduleError, match=message):
        s.storage_align(s.block("X_inp"), 0, 64)
    s.set_scope(s.block("Y_init"), "acc")


def test_what_it_reads_is_not_inlined_afterwards() -> None:
    a, b = te.placeholder((4, 8), u8, "A"), te.placeholder((2, 2, 16, 4), i8, "B")
    twice = te.compute((4, 8), lambda i, k: a[i, k] + a[i, k], "twice")
    k = te.reduce_axis(8, "k")
    c = te.compute(
        (4, 32),
        lambda i, j: te.sum_(cast(twice[i, k], i32) * cast(b[j // 16, k // 4, j % 16, k % 4], i32), [k]),
        "C",
    )
    program = te.to_program([a, b], [c])
    s = Schedule(program)
    _, j1 = tiled(s, 16, 4)
    s.tensorize(j1, VNNI)
    same_results(program, s.program)
    with pytest.raises(ScheduleError, match="a vector of twice is read at once"):
        s.compute_inline(s.block("twice"))


def a_step_with_instructions(s: Schedule, r: random.Random) -> bool:
    """Tries an instruction on some loop, or any other step; tells whether it was accepted."""
    if r.random() < 0.7:
        return step(s, r)
    found = [LoopRef(f.var) for f in statements(s.function.body) if isinstance(f, For)]
    for loop in found:
        for name in (SHORT, "interleave_i8_8x4"):
            try:
                s.tensorize(loop, name)
            except ScheduleError:
                continue
            return True
    return False


@pytest.mark.sampled(4)
@pytest.mark.parametrize("seed", range(12))
def test_random_steps_around_it(seed: int) -> None:
    case, r = product(3, 16, 8), random.Random(seed)
    s = Schedule(case.program)
    packed(s, 8, 4)
    done = 0
    for _ in range(25):
        if a_step_with_instructions(s, r):
            done += 1
            check(case, s.program, seed)
    assert done > 2
