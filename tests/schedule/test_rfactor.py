"""`rfactor`: a reduction is cut into partial results."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from tests.schedule.programs import CASES, matmul, symbolic_rows
from tests.schedule.running import check, loop, refusal, same_results, transition

from weft import te
from weft.loop.parser import parse_program
from weft.schedule import Schedule
from weft.support.dtypes import f32
from weft.support.errors import ScheduleError


def test_along_a_piece(golden: Callable[[str], None]) -> None:
    case = matmul(4, 3, 6)
    s = Schedule(case.program)
    *_, k = s.loops(s.block("C"))
    _, ki = s.split(k, [None, 2])
    partial = s.rfactor(s.block("C"), ki)
    assert partial == s.block("C_rf")
    check(case, s.program)
    golden(transition(case.program, s.program))


def test_partial_results_in_lanes() -> None:
    case = matmul(4, 3, 8)
    s = Schedule(case.program)
    *_, k = s.loops(s.block("C"))
    ko, ki = s.split(k, [None, 4])
    partial = s.rfactor(s.block("C"), ki)
    s.reorder(s.loops(partial)[2:])
    s.decompose_reduction(partial, ko)
    s.vectorize(s.loops(partial)[-1])
    s.parallel(s.loops(partial)[0])
    check(case, s.program)


def test_of_a_maximum_over_two_loops() -> None:
    case = CASES["pool"]()
    s = Schedule(case.program)
    *_, a, _ = s.loops(s.block("Y"))
    s.rfactor(s.block("Y"), a)
    check(case, s.program)


def test_symbolic() -> None:
    case = symbolic_rows()
    s = Schedule(case.program)
    s.rfactor(s.block("S"), s.loops(s.block("S"))[1])
    check(case, s.program)


def test_of_the_outer_piece_whose_inner_one_is_guarded_elsewhere() -> None:
    """The guard is on the rows, not on the reduction."""
    case = matmul(5, 3, 6)
    s = Schedule(case.program)
    i, _, k = s.loops(s.block("C"))
    s.split(i, [None, 2])
    ko, _ = s.split(k, [None, 3])
    s.rfactor(s.block("C"), ko)
    check(case, s.program)


def test_in_a_parallel_loop() -> None:
    case = matmul()
    s = Schedule(case.program)
    i, _, k = s.loops(s.block("C"))
    s.parallel(i)
    s.rfactor(s.block("C"), k)
    check(case, s.program)


def test_refused_for_a_spatial_loop(golden: Callable[[str], None]) -> None:
    s = Schedule(matmul().program)
    golden(refusal(lambda: s.rfactor(s.block("C"), s.loops(s.block("C"))[0])))


def test_refused_where_the_loop_is_guarded(golden: Callable[[str], None]) -> None:
    s = Schedule(matmul(4, 3, 5).program)
    _, ki = s.split(s.loops(s.block("C"))[2], [None, 2])
    golden(refusal(lambda: s.rfactor(s.block("C"), ki)))


def test_refused_for_a_loop_over_results_and_reduction(golden: Callable[[str], None]) -> None:
    s = Schedule(matmul().program)
    fused = s.fuse(s.loops(s.block("C")))
    golden(refusal(lambda: s.rfactor(s.block("C"), fused)))


def test_refused_for_several_values() -> None:
    s = Schedule(CASES["argmax"]().program)
    with pytest.raises(ScheduleError, match="top is not a single assignment"):
        s.rfactor(s.block("top"), s.loops(s.block("top"))[1])


def test_refused_after_decomposing() -> None:
    s = Schedule(matmul().program)
    *_, k = s.loops(s.block("C"))
    s.decompose_reduction(s.block("C"), k)
    with pytest.raises(ScheduleError, match="writes the same buffer as C"):
        s.rfactor(s.block("C"), k)


def test_refused_where_sums_are_computed_again() -> None:
    s = Schedule(parse_program(REPEATED))
    with pytest.raises(ScheduleError, match="k computes some results of B more than once"):
        s.rfactor(s.block("B"), loop(s, "k"))


REPEATED = """
def main(A: f32[2, 3], B: f32[1]):
    for k in range(0, 2):
        for r in range(0, 2):
            for u in range(0, 3):
                with block("B", v=spatial(1, 0), vk=reduce(2, k), vu=reduce(3, u)):
                    with init():
                        B[v] = 0.0
                    B[v] = B[v] + A[vk, vu]
"""


def test_refused_for_an_operator_that_is_not_associative() -> None:
    x, k = te.placeholder((4, 6), f32, "X"), te.reduce_axis(6, "k")
    apart = te.reducer(lambda a, b: (a[0] - b[0],), te.sum_.identity, "apart")
    s = Schedule(te.to_program([x], [te.compute((4,), lambda i: apart(x[i, k], [k]), "A")]))
    with pytest.raises(ScheduleError, match="A is not of the form C = C op x"):
        s.rfactor(s.block("A"), s.loops(s.block("A"))[1])


def test_a_guarded_reduction() -> None:
    x, k = te.placeholder((4, 6), f32, "X"), te.reduce_axis(6, "k")
    before = te.to_program([x], [te.compute((4,), lambda i: te.sum_(x[i, k], [k], k <= i), "A")])
    s = Schedule(before)
    s.rfactor(s.block("A"), s.loops(s.block("A"))[1])
    same_results(before, s.program)
