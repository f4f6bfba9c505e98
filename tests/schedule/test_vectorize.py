"""`vectorize`: a loop's iterations become the lanes of vectors."""

from __future__ import annotations

from collections.abc import Callable

from tests.schedule.programs import matmul, stencil, symbolic_matmul
from tests.schedule.running import check, loop, refusal, transition

from weft.loop.parser import parse_program
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
