"""`fuse`: nested loops become one."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from tests.schedule.programs import CASES, matmul, symbolic_rows
from tests.schedule.running import check, refusal, transition

from weft.loop import parse_program
from weft.schedule import Schedule, loop_path


def test_two_loops(golden: Callable[[str], None]) -> None:
    case = matmul()
    s = Schedule(case.program)
    i, j, _ = s.loops(s.block("C"))
    s.fuse([i, j])
    check(case, s.program)
    golden(transition(case.program, s.program))


def test_symbolic(golden: Callable[[str], None]) -> None:
    case = symbolic_rows()
    s = Schedule(case.program)
    s.fuse(s.loops(s.block("B")))
    check(case, s.program)
    golden(transition(case.program, s.program))


def test_a_split_is_undone() -> None:
    case = matmul(6)
    s = Schedule(case.program)
    i, *_ = s.loops(s.block("C"))
    fused = s.fuse(s.split(i, [None, 2]))
    assert f"spatial(6, {fused.var.name})" in str(s)
    check(case, s.program)


def test_a_reduction_with_what_it_is_for() -> None:
    case = matmul()
    s = Schedule(case.program)
    s.split(s.fuse(s.loops(s.block("C"))), [None, 4])
    check(case, s.program)


def test_one_loop_stays_as_it_is() -> None:
    s = Schedule(matmul().program)
    i, *_ = s.loops(s.block("C"))
    before = str(s)
    assert s.fuse([i]) == i
    assert str(s) == before


def test_old_references_lead_to_the_fused_loop() -> None:
    s = Schedule(matmul().program)
    i, j, _ = s.loops(s.block("C"))
    fused = s.fuse([i, j])
    s.parallel(j)
    assert loop_path(s.function, fused)[-1].kind == "parallel"  # type: ignore[attr-defined]


@pytest.mark.parametrize("name", CASES)
def test_all_loops_of_each_block(name: str) -> None:
    case = CASES[name]()
    s = Schedule(case.program)
    for block in s.blocks():
        s.fuse(s.loops(block)[1 if name == "recurrence" and block.name in "GS" else 0 :])
    check(case, s.program)


def test_refused_out_of_order(golden: Callable[[str], None]) -> None:
    s = Schedule(matmul().program)
    i, j, _ = s.loops(s.block("C"))
    golden(refusal(lambda: s.fuse([j, i])))


def test_refused_with_a_loop_left_out(golden: Callable[[str], None]) -> None:
    s = Schedule(matmul().program)
    i, _, k = s.loops(s.block("C"))
    golden(refusal(lambda: s.fuse([i, k])))


def test_refused_with_something_between(golden: Callable[[str], None]) -> None:
    s = Schedule(CASES["rows"]().program)
    i, j = s.loops(s.block("out"))
    s.compute_at(s.block("total"), i)
    golden(refusal(lambda: s.fuse([i, j])))


def test_refused_for_separate_loops(golden: Callable[[str], None]) -> None:
    s = Schedule(CASES["bias_relu"]().program)
    d, e = s.loops(s.block("D")), s.loops(s.block("E"))
    golden(refusal(lambda: s.fuse([d[0], e[1]])))


def test_refused_for_one_loop_twice(golden: Callable[[str], None]) -> None:
    s = Schedule(matmul().program)
    i, *_ = s.loops(s.block("C"))
    golden(refusal(lambda: s.fuse([i, i])))


def test_refused_for_none(golden: Callable[[str], None]) -> None:
    golden(refusal(lambda: Schedule(matmul().program).fuse([])))


def test_refused_for_a_triangle(golden: Callable[[str], None]) -> None:
    s = Schedule(parse_program(TRIANGLE))
    golden(refusal(lambda: s.fuse(s.loops(s.block("A")))))


TRIANGLE = """
def main(A: f32[4, 4]):
    for i in range(0, 4):
        for j in range(0, i + 1):
            with block("A", vi=spatial(4, i), vj=spatial(4, j)):
                A[vi, vj] = 1.0
"""
