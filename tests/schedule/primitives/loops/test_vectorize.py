"""`vectorize`: a loop's iterations become the lanes of vectors."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from tests.schedule.compiling import check_compiled
from tests.schedule.programs import CASES, matmul, stencil, symbolic_matmul, symbolic_rows, two_outputs
from tests.schedule.refusing import refused
from tests.schedule.running import check, loop, refusal, same_results, transition

from weft.loop import parse_program
from weft.schedule import Schedule


def test_a_loop(golden: Callable[[str], None]) -> None:
    case = matmul()
    s = Schedule(case.program)
    i, j, k = s.loops(s.block("C"))
    jo, ji = s.split(j, [None, 4])
    s.reorder([i, jo, k, ji])
    s.vectorize(ji)
    check(case, s.program)
    golden(transition(case.program, s.program))


def test_a_constant_piece_of_a_symbolic_loop() -> None:
    case = symbolic_matmul()
    s = Schedule(case.program)
    i, j, k = s.loops(s.block("C"))
    io, ii = s.split(i, [None, 4])
    s.reorder([io, j, k, ii])
    s.vectorize(ii)
    check(case, s.program)


def test_a_producer_whose_outer_iterations_overlap() -> None:
    case = stencil()
    s = Schedule(case.program)
    outer, _ = s.split(s.loops(s.block("C"))[0], [None, 4])
    s.compute_at(s.block("B"), outer)
    s.vectorize(s.split(s.loops(s.block("B"))[-1], [None, 4])[1])
    check(case, s.program)


def test_lanes_under_a_guard() -> None:
    case = matmul()
    s = Schedule(case.program)
    s.vectorize(s.split(s.loops(s.block("C"))[1], [None, 4])[1])
    check_compiled(case, s.program)


def test_a_whole_row_of_any_length() -> None:
    case = CASES["bias_relu"]()
    s = Schedule(case.program)
    s.vectorize(s.loops(s.block("E"))[1])
    check_compiled(case, s.program)


def test_one_lane() -> None:
    case = matmul()
    s = Schedule(case.program)
    s.vectorize(s.split(s.loops(s.block("C"))[1], [None, 1])[1])
    check_compiled(case, s.program)


def test_rows_whose_elements_lie_apart() -> None:
    case = two_outputs()
    s = Schedule(case.program)
    s.vectorize(s.loops(s.block("B"))[0])
    check_compiled(case, s.program)


def test_lanes_that_count_down() -> None:
    text = "def main(X: f32[8], B: f32[8]):\n    for i in range(0, 8):\n"
    text += '        with block("B", v=spatial(8, 7 - i)):\n            B[v] = X[7 - v] + 1.0\n'
    s = Schedule(parse_program(text))
    before = s.program
    s.vectorize(loop(s, "i"))
    same_results(before, s.program)


def test_gathered_lanes() -> None:
    case = CASES["gather"]()
    s = Schedule(case.program)
    s.vectorize(s.loops(s.block("B"))[0])
    check_compiled(case, s.program)


def test_a_choice_in_each_lane() -> None:
    case = CASES["conv2d"]()
    s = Schedule(case.program)
    s.vectorize(s.loops(s.block("P"))[2])
    check_compiled(case, s.program)


def test_the_start_of_a_reduction() -> None:
    case = matmul()
    s = Schedule(case.program)
    i, j, k = s.loops(s.block("C"))
    s.reorder([i, k, j])
    start = s.decompose_reduction(s.block("C"), k)
    s.vectorize(s.loops(start)[1])
    s.vectorize(j)
    check_compiled(case, s.program)


def test_a_loop_around_others() -> None:
    case = matmul(4, 8, 3)
    s = Schedule(case.program)
    i, j, k = s.loops(s.block("C"))
    s.reorder([i, j, k])
    s.vectorize(j)
    s.unroll(k)
    check_compiled(case, s.program)


def test_pieces_of_fused_symbolic_loops() -> None:
    case = symbolic_rows(3, 5)
    s = Schedule(case.program)
    s.vectorize(s.split(s.fuse(s.loops(s.block("A"))), [None, 4])[1])
    check_compiled(case, s.program)


@pytest.mark.parametrize("kind", ["parallel", "vectorize", "unroll"])
def test_refused_for_a_loop_with_a_kind(kind: str) -> None:
    s = Schedule(matmul().program)
    i = s.loops(s.block("C"))[0]
    s.apply(kind, i)
    shown = {"parallel": "parallel", "vectorize": "vectorized", "unroll": "unrolled"}[kind]
    refused(lambda: s.vectorize(i), f"the loop is {shown} already", f"for i in {shown}(0, 5)", "choose a serial loop")


def test_refused_for_a_symbolic_loop(golden: Callable[[str], None]) -> None:
    s = Schedule(symbolic_matmul().program)
    i, *_ = s.loops(s.block("C"))
    golden(refusal(lambda: s.vectorize(i)))


def test_refused_for_a_reduction(golden: Callable[[str], None]) -> None:
    s = Schedule(matmul().program)
    *_, k = s.loops(s.block("C"))
    golden(refusal(lambda: s.vectorize(k)))


def test_refused_where_iterations_share_a_halo(golden: Callable[[str], None]) -> None:
    s = Schedule(stencil(4).program)
    (i,) = s.loops(s.block("C"))
    s.compute_at(s.block("B"), i)
    golden(refusal(lambda: s.vectorize(i)))


def test_refused_for_bare_statements(golden: Callable[[str], None]) -> None:
    s = Schedule(parse_program("def main(A: f32[5]):\n    for i in range(0, 4):\n        A[i] = A[i + 1]\n"))
    golden(refusal(lambda: s.vectorize(loop(s, "i"))))


def test_refused_for_a_place_that_data_decide(golden: Callable[[str], None]) -> None:
    s = Schedule(parse_program(SCATTERED))
    golden(refusal(lambda: s.vectorize(loop(s, "i"))))


SCATTERED = """
def main(A: f32[5], T: i64[4]):
    for i in range(0, 4):
        with block("A", v=spatial(5, T[i])):
            A[v] = 1.0
"""
