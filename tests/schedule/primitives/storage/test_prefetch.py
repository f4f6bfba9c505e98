"""`prefetch`: a loop asks for memory some iterations before it reads it."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from tests.schedule.compiling import HERE, check_compiled, lowered
from tests.schedule.programs import CASES, Case, matmul, rows
from tests.schedule.running import refusal, transition

from weft.codegen.llvm.object_code import assembly
from weft.loop import PREFETCH, Call, Program, parse_program, statements
from weft.lower import lower
from weft.schedule import Schedule
from weft.targets import LEVELS, cpu


def hints(program: Program) -> list[str]:
    """The text of the calls of the intrinsic."""
    return [
        str(s) for f in program.functions for s in statements(f.body) if isinstance(s, Call) and s.callee == PREFETCH
    ]


def test_of_rows(golden: Callable[[str], None]) -> None:
    case = matmul(4, 32, 6)
    s = Schedule(case.program)
    _, j, k = s.loops(s.block("C"))
    s.decompose_reduction(s.block("C"), j)
    s.reorder([k, j])
    s.vectorize(j)
    s.prefetch(k, "B", 2)
    check_compiled(case, s.program)
    golden(transition(case.program, s.program))


def test_lowered(golden: Callable[[str], None]) -> None:
    s = Schedule(matmul(4, 32, 6).program)
    _, j, k = s.loops(s.block("C"))
    s.decompose_reduction(s.block("C"), j)
    s.reorder([k, j])
    s.vectorize(j)
    s.prefetch(k, "B", 2)
    golden(str(lowered(s.program)))


def test_reaches_the_machine() -> None:
    s = Schedule(matmul(4, 32, 6).program)
    s.prefetch(s.loops(s.block("C"))[2], "B")
    assert "prefetcht0" in assembly(lower(s.program, HERE), HERE)


@pytest.mark.parametrize(("columns", "level"), [(1024, 2), (1008, 1)])
def test_lines_pages_apart_go_to_the_second_level(columns: int, level: int) -> None:
    """They share a set of the first level, which would not keep them until they are read."""
    s = Schedule(matmul(4, columns, 32).program)
    _, j, k = s.loops(s.block("C"))
    s.decompose_reduction(s.block("C"), j)
    s.reorder([k, j])
    s.prefetch(k, "B", 16)
    assert {h[-2] for h in hints(lowered(s.program))} == {str(level)}


def test_in_a_parallel_loop_of_two_buffers() -> None:
    case = matmul(4, 32, 6)
    s = Schedule(case.program)
    i, _, k = s.loops(s.block("C"))
    s.parallel(i)
    s.prefetch(k, "A")
    s.prefetch(k, "B", 3)
    flat = check_compiled(case, s.program)
    assert len(hints(flat)) == 2


@pytest.mark.parametrize(("stride", "calls"), [(4, 1), (8, 1), (16, 1), (20, 2), (24, 2)])
def test_half_a_line_that_continues_the_last_is_one_prefetch(stride: int, calls: int) -> None:
    """The next step prefetches a line that the end of this one's run reaches; runs that are apart prefetch both of their ends."""
    program = parse_program(
        f"""
def main(B: f32[2048], C: f32[8]):
    for k in range(0, 40, prefetch=(B, 4)):
        C[ramp(0, 1, 8)] = C[ramp(0, 1, 8)] + B[ramp(k * {stride}, 1, 8)]
"""
    )
    assert len(hints(lower(program, cpu("avx2")))) == calls


def test_each_address_once() -> None:
    case = rows()
    s = Schedule(case.program)
    i, _ = s.loops(s.block("apart"))
    s.compute_inline(s.block("apart"))
    s.prefetch(s.loops(s.block("total"))[0], "X")
    flat = check_compiled(case, s.program)
    assert len(hints(flat)) == 1
    assert i not in s.loops(s.block("out"))


def test_an_address_from_memory_is_not_asked_for() -> None:
    case = CASES["gather"]()
    s = Schedule(case.program)
    s.compute_inline(s.block("A"))
    s.compute_inline(s.block("S"))
    s.prefetch(s.loops(s.block("B"))[0], "T")
    assert len(hints(check_compiled(case, s.program))) == 1


def test_a_new_distance_takes_the_place_of_the_old() -> None:
    s = Schedule(matmul().program)
    k = s.loops(s.block("C"))[2]
    s.prefetch(k, "B", 2)
    s.prefetch(k, "B", 4)
    assert "for k in range(0, 3, prefetch=(B, 4)):" in str(s)


def test_lowered_again_nothing_is_added() -> None:
    s = Schedule(matmul(4, 32, 6).program)
    s.prefetch(s.loops(s.block("C"))[2], "B")
    once = lower(s.program, HERE)
    assert str(lower(once, HERE)) == str(once)


def test_refused_for_a_buffer_that_is_not_read(golden: Callable[[str], None]) -> None:
    s = Schedule(matmul().program)
    golden(refusal(lambda: s.prefetch(s.loops(s.block("C"))[2], "C")))


def test_refused_where_each_iteration_reads_the_same(golden: Callable[[str], None]) -> None:
    s = Schedule(matmul().program)
    golden(refusal(lambda: s.prefetch(s.loops(s.block("C"))[0], "B")))


def test_refused_distance(golden: Callable[[str], None]) -> None:
    s = Schedule(matmul().program)
    golden(refusal(lambda: s.prefetch(s.loops(s.block("C"))[2], "B", 0)))


def tiled(columns: int = 64) -> tuple[Case, Schedule]:
    """Tiles of 2 rows by *columns*, one panel after the other; the rows of a tile unrolled."""
    case = matmul(6, 2 * columns, 5)
    s = Schedule(case.program)
    i, j, k = s.loops(s.block("C"))
    j0, j1 = s.split(j, [None, columns])
    i0, i1 = s.split(i, [None, 2])
    s.reorder([j0, i0, k, i1, j1])
    s.decompose_reduction(s.block("C"), k)
    s.unroll(i1)
    s.vectorize(j1)
    return case, s


def test_each_address_once_for_unrolled_loops() -> None:
    case, s = tiled()
    s.prefetch(s.loops(s.block("C"))[2], "B", 2)
    body = assembly(check_compiled(case, s.program), HERE)
    assert body.count("prefetcht0") == 64 * 4 // HERE.caches.line


@pytest.mark.parametrize(("columns", "lines"), [(64, 4), (32, 2), (20, 3)])
@pytest.mark.parametrize("level", LEVELS)
def test_each_line_once_however_short_the_vectors(level: str, columns: int, lines: int) -> None:
    """Two vectors of AVX2 and four of SSE are one line: they are asked for together."""
    _, s = tiled(columns)
    s.prefetch(s.loops(s.block("C"))[2], "B", 2)
    target = cpu(level)
    assert assembly(lower(s.program, target), target).count("prefetcht0") == lines


@pytest.mark.parametrize(("columns", "lines"), [(32, 2), (20, 3)])
def test_rows_that_begin_anywhere_in_a_line_touch_one_more(columns: int, lines: int) -> None:
    """Rows of 2 * 32 elements are whole lines apart, those of 2 * 20 are not."""
    case, s = tiled(columns)
    s.prefetch(s.loops(s.block("C"))[2], "B", 2)
    assert len(hints(check_compiled(case, s.program))) == lines


def test_each_address_once_where_the_loop_that_moves_it_is_inside() -> None:
    """The columns of a tile are unrolled inside its rows, which read the same."""
    case = matmul(6, 128, 5)
    s = Schedule(case.program)
    i, j, k = s.loops(s.block("C"))
    j0, columns, j1 = s.split(j, [None, 2, 16])
    i0, rows = s.split(i, [None, 3])
    s.reorder([j0, i0, k, rows, columns, j1])
    s.decompose_reduction(s.block("C"), k)
    s.unroll(rows)
    s.unroll(columns)
    s.vectorize(j1)
    s.prefetch(k, "B", 2)
    flat = check_compiled(case, s.program)
    assert assembly(flat, HERE).count("prefetcht0") == 2 * 16 * 4 // HERE.caches.line
