"""`compute_inline` and `reverse_compute_inline`: a formula takes the place of what it computes."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from tests.schedule.programs import CASES, conv2d, rows, two_outputs
from tests.schedule.running import check, refusal, same_results, transition

from weft import te
from weft.ir.expr import Expr
from weft.loop.parser import parse_program
from weft.schedule import Schedule
from weft.support.dtypes import f32
from weft.support.errors import ScheduleError


def test_into_a_reduction(golden: Callable[[str], None]) -> None:
    case = conv2d()
    s = Schedule(case.program)
    s.compute_inline(s.block("P"))
    check(case, s.program)
    golden(transition(case.program, s.program))


def test_into_several_readers() -> None:
    case = two_outputs()
    s = Schedule(case.program)
    s.compute_inline(s.block("A"))
    assert [b.name for b in s.blocks()] == ["B", "C"]
    check(case, s.program)


def test_at_other_indices() -> None:
    for name in ("stencil", "reshaped", "gather", "symmetric"):
        case = CASES[name]()
        s = Schedule(case.program)
        while len(s.blocks()) > 1:
            s.compute_inline(s.blocks()[0])
        check(case, s.program)


def test_after_its_loops_were_split() -> None:
    case = CASES["stencil"]()
    s = Schedule(case.program)
    s.split(s.loops(s.block("B"))[0], [None, 4])
    s.compute_inline(s.block("B"))
    check(case, s.program)


def test_symbolic() -> None:
    case = CASES["symbolic_rows"]()
    s = Schedule(case.program)
    s.compute_inline(s.block("A"))
    check(case, s.program)


def test_refused_for_a_reduction(golden: Callable[[str], None]) -> None:
    s = Schedule(rows().program)
    golden(refusal(lambda: s.compute_inline(s.block("total"))))


def test_refused_for_an_output(golden: Callable[[str], None]) -> None:
    s = Schedule(rows().program)
    golden(refusal(lambda: s.compute_inline(s.block("out"))))


def test_refused_where_an_input_changes_in_between() -> None:
    s = Schedule(parse_program(CHANGED))
    with pytest.raises(ScheduleError, match="A, which comes later, writes what T reads"):
        s.compute_inline(s.block("T"))


CHANGED = """
def main(A: f32[4], B: f32[4]):
    T = alloc("global", f32[4])
    for i in range(0, 4):
        with block("T", v=spatial(4, i)):
            T[v] = A[v] * 2.0
    for u in range(0, 4):
        with block("A", v=spatial(4, u)):
            A[v] = 0.0
    for j in range(0, 4):
        with block("B", v=spatial(4, j)):
            B[v] = T[v] + 1.0
"""


KEPT = CHANGED.replace("A[v] = 0.0", "B[v] = 0.0").replace('block("A"', 'block("Z"')


def test_refused_for_something_else_than_an_assignment() -> None:
    s = Schedule(parse_program(KEPT.replace("T[v] = A[v] * 2.0", "if A[v] > 1.0:\n                T[v] = A[v]")))
    with pytest.raises(ScheduleError, match="T is not a single assignment"):
        s.compute_inline(s.block("T"))


def test_refused_under_a_condition() -> None:
    s = Schedule(parse_program(KEPT.replace("v=spatial(4, i)", "v=spatial(4, i), where=i != 2")))
    with pytest.raises(ScheduleError, match="T runs under a condition"):
        s.compute_inline(s.block("T"))


def test_refused_where_the_reader_could_not_reach_its_inputs() -> None:
    """In a parallel loop each iteration has its own halo of A, which nothing outside can read."""
    case = CASES["stencil"]()
    s = Schedule(case.program)
    (i,) = s.loops(s.block("B"))
    s.compute_at(s.block("A"), i)
    s.parallel(i)
    with pytest.raises(ScheduleError, match="C would use A, which each iteration of another loop has for itself"):
        s.compute_inline(s.block("B"))


def test_reverse(golden: Callable[[str], None]) -> None:
    case = CASES["bias_relu"]()
    s = Schedule(case.program)
    s.reverse_compute_inline(s.block("E"))
    check(case, s.program)
    golden(transition(case.program, s.program))


def test_reverse_with_another_input_made_before() -> None:
    a, b = te.placeholder((4, 5), f32, "A"), te.placeholder((4, 5), f32, "B")
    left = te.compute((4, 5), lambda i, j: a[i, j] * 2.0, "L")
    right = te.compute((4, 5), lambda i, j: b[i, j] + 1.0, "R")

    def both(i: Expr, j: Expr) -> Expr:
        return left[i, j] - right[i, j]

    before = te.to_program([a, b], [te.compute((4, 5), both, "S")])
    s = Schedule(before)
    s.reverse_compute_inline(s.block("S"))
    assert [x.name for x in s.blocks()] == ["L", "R"]
    same_results(before, s.program)


def test_reverse_refused_where_another_input_is_made_in_between() -> None:
    s = Schedule(parse_program(BETWEEN))
    with pytest.raises(ScheduleError, match="R, which comes later, makes what S reads"):
        s.reverse_compute_inline(s.block("S"))


BETWEEN = """
def main(A: f32[4], D: f32[4], S: f32[4]):
    L = alloc("global", f32[4])
    R = alloc("global", f32[4])
    for i in range(0, 4):
        with block("L", v=spatial(4, i)):
            L[v] = A[v] * 2.0
    for j in range(0, 4):
        with block("R", v=spatial(4, j)):
            R[v] = A[v] + 1.0
    for k in range(0, 4):
        with block("S", v=spatial(4, k)):
            S[v] = L[v] - R[v]
    for u in range(0, 4):
        with block("D", v=spatial(4, u)):
            D[v] = R[v]
"""


def test_reverse_into_another_order_of_axes() -> None:
    a = te.placeholder((4, 5), f32, "A")
    t = te.compute((4, 5), lambda i, j: a[i, j] * 2.0, "T")
    before = te.to_program([a], [te.compute((5, 4), lambda i, j: t[j, i] + 1.0, "B")])
    s = Schedule(before)
    s.reverse_compute_inline(s.block("B"))
    same_results(before, s.program)


def test_reverse_refused_for_a_part() -> None:
    a = te.placeholder((6,), f32, "A")
    t = te.compute((6,), lambda i: a[i] * 2.0, "T")
    s = Schedule(te.to_program([a], [te.compute((4,), lambda i: t[i] + 1.0, "B")]))
    with pytest.raises(ScheduleError, match="B reads only a part of what T computes"):
        s.reverse_compute_inline(s.block("B"))


def test_reverse_refused_for_a_reduction(golden: Callable[[str], None]) -> None:
    s = Schedule(CASES["bias_relu"]().program)
    golden(refusal(lambda: s.reverse_compute_inline(s.block("D"))))


def test_reverse_refused_with_other_readers(golden: Callable[[str], None]) -> None:
    s = Schedule(two_outputs().program)
    golden(refusal(lambda: s.reverse_compute_inline(s.block("C"))))


def test_reverse_refused_at_other_indices(golden: Callable[[str], None]) -> None:
    s = Schedule(CASES["stencil"]().program)
    golden(refusal(lambda: s.reverse_compute_inline(s.block("C"))))


def test_reverse_refused_where_its_result_is_read_before_it() -> None:
    s = Schedule(parse_program(CHANGED.replace("A[v] = 0.0", "A[v] = B[v]")))
    with pytest.raises(ScheduleError, match="A, which comes before B, uses B too"):
        s.reverse_compute_inline(s.block("B"))


def test_reverse_refused_without_a_producer() -> None:
    s = Schedule(CASES["stencil"]().program)
    with pytest.raises(ScheduleError, match="nothing makes what A reads"):
        s.reverse_compute_inline(s.block("A"))
