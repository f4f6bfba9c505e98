"""`parallel`: a loop's iterations are shared out among the threads."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from tests.schedule.programs import blur, matmul, recurrence, rows, stencil, symbolic_matmul
from tests.schedule.running import check, loop, refusal, same_results, transition

from weft.loop import For, Stmt, parse_program
from weft.schedule import Schedule
from weft.schedule.legality.flow_dependence import check_structured
from weft.support.errors import ScheduleError


def test_a_loop(golden: Callable[[str], None]) -> None:
    case = matmul()
    s = Schedule(case.program)
    i, *_ = s.loops(s.block("C"))
    s.parallel(i)
    check(case, s.program)
    golden(transition(case.program, s.program))


def test_inside_of_a_loop(golden: Callable[[str], None]) -> None:
    """The rows of a thread are inside of the reduction, of which it runs each step once."""
    case = matmul()
    s = Schedule(case.program)
    i, j, k = s.loops(s.block("C"))
    s.reorder([i, k, j])
    s.parallel(i, inside=1)
    check(case, s.program)
    golden(transition(case.program, s.program))
    t = Schedule(case.program)
    assert "there are no 3 serial loops right under it" in refusal(
        lambda: t.parallel(t.loops(t.block("C"))[0], inside=3)
    )


def test_symbolic() -> None:
    case = symbolic_matmul()
    s = Schedule(case.program)
    for b in s.blocks():
        outer, _ = s.split(s.loops(b)[0], [None, 2])
        s.parallel(outer)
    check(case, s.program)


def test_all_but_the_reduction() -> None:
    case = matmul()
    s = Schedule(case.program)
    i, j, k = s.loops(s.block("C"))
    s.reorder([k, i, j])
    s.parallel(i)
    s.parallel(j)
    check(case, s.program)


def test_how_loops_run_asks_no_question_again(monkeypatch: pytest.MonkeyPatch) -> None:
    """Only a step that moves something has the loops around it checked anew."""
    asked: list[str] = []

    def counted(root: Stmt) -> None:
        asked.extend([root.var.name] if isinstance(root, For) else [])
        check_structured(root)

    monkeypatch.setattr("weft.schedule.legality.loop_kinds.check_structured", counted)
    s = Schedule(matmul().program)
    i, j, k = s.loops(s.block("C"))
    s.parallel(i)
    assert asked == ["i"]
    s.annotate(k, "note", 1)
    s.unroll(k)
    assert asked == ["i"]
    s.vectorize(j)
    assert asked == ["i", "j"]
    s.add_unit_loop(s.block("C"))
    assert asked == ["i", "j"]
    s.reorder([k, j])
    assert asked[2:] == ["i", "j"]


def test_rows_with_what_each_needs_for_itself(golden: Callable[[str], None]) -> None:
    """Each row's intermediate results lie apart in their buffers, except the halo, which every iteration has for itself."""
    case = blur()
    s = Schedule(case.program)
    i, _ = s.loops(s.block("B"))
    s.compute_at(s.block("A"), i)
    s.parallel(i)
    check(case, s.program)
    golden(transition(case.program, s.program))


def test_what_lies_apart_stays_where_it_is() -> None:
    case = rows()
    s = Schedule(case.program)
    i, _ = s.loops(s.block("out"))
    for name in ("total", "apart", "most"):
        s.compute_at(s.block(name), i)
    s.parallel(i)
    assert "        most = alloc" not in str(s)
    check(case, s.program)


def test_an_inner_loop_under_a_halo() -> None:
    """Outer iterations overlap, but those of the inner loop do not."""
    case = blur()
    s = Schedule(case.program)
    i, _ = s.loops(s.block("B"))
    s.compute_at(s.block("A"), i)
    s.parallel(s.loops(s.block("A"))[-1])
    check(case, s.program)


def test_strided_iterations() -> None:
    case = matmul(9)
    s = Schedule(case.program)
    i, *_ = s.loops(s.block("C"))
    outer, inner = s.split(i, [None, 4])
    s.reorder([inner, outer])
    s.parallel(inner)
    s.vectorize(s.loops(s.block("C"))[2])
    check(case, s.program)


def test_after_splitting_the_pieces_again() -> None:
    """The guards of both splits together keep the iterations' boxes apart and filled."""
    case = stencil()
    s = Schedule(case.program)
    outer, piece = s.split(s.loops(s.block("C"))[0], [None, 5])
    s.compute_at(s.block("B"), outer)
    s.split(piece, [None, 3])
    s.split(s.loops(s.block("B"))[-1], [None, 4])
    s.parallel(outer)
    check(case, s.program)


def test_refused_for_a_reduction(golden: Callable[[str], None]) -> None:
    s = Schedule(matmul().program)
    *_, k = s.loops(s.block("C"))
    golden(refusal(lambda: s.parallel(k)))


def test_refused_for_a_loop_over_results_and_reduction(golden: Callable[[str], None]) -> None:
    s = Schedule(matmul().program)
    fused = s.fuse(s.loops(s.block("C")))
    golden(refusal(lambda: s.parallel(fused)))


def test_refused_twice(golden: Callable[[str], None]) -> None:
    s = Schedule(matmul().program)
    i, *_ = s.loops(s.block("C"))
    s.parallel(i)
    golden(refusal(lambda: s.parallel(i)))


def test_refused_where_another_iteration_is_read(golden: Callable[[str], None]) -> None:
    s = Schedule(parse_program(SHIFTED))
    golden(refusal(lambda: s.parallel(loop(s, "i"))))


SHIFTED = """
def main(A: f32[5], B: f32[4]):
    for i in range(0, 4):
        with block("A", v=spatial(4, i)):
            A[v + 1] = 1.0
        with block("B", v=spatial(4, i)):
            B[v] = A[v]
"""


def test_refused_where_one_output_gets_written_by_all(golden: Callable[[str], None]) -> None:
    s = Schedule(parse_program(ALL_WRITE))
    golden(refusal(lambda: s.parallel(loop(s, "i"))))


ALL_WRITE = """
def main(A: f32[4], B: f32[4]):
    for i in range(0, 4):
        for j in range(0, 4):
            with block("B", v=spatial(4, j)):
                B[v] = A[v]
"""

RUNNING = """
def main(A: f32[4], B: f32[4]):
    T = alloc("global", f32[4])
    for z in range(0, 4):
        with block("Z", v=spatial(4, z)):
            T[v] = 0.0
    for i in range(0, 4):
        for j in range(0, 4):
            with block("T", v=spatial(4, j)):
                T[v] = T[v] + A[v]
        with block("B", v=spatial(4, i)):
            B[v] = T[v]
"""


def test_refused_where_a_buffer_carries_values(golden: Callable[[str], None]) -> None:
    s = Schedule(parse_program(RUNNING))
    golden(refusal(lambda: s.parallel(loop(s, "i"))))


LAST = """
def main(A: f32[4], B: f32[4]):
    T = alloc("global", f32[4])
    for i in range(0, 4):
        for j in range(0, 4):
            with block("T", v=spatial(4, j)):
                T[v] = A[v]
    for k in range(0, 4):
        with block("B", v=spatial(4, k)):
            B[v] = T[v]
"""


def test_refused_where_a_buffer_is_used_after_the_loop(golden: Callable[[str], None]) -> None:
    s = Schedule(parse_program(LAST))
    golden(refusal(lambda: s.parallel(loop(s, "i"))))


PART = """
def main(A: f32[6], B: f32[6]):
    T = alloc("global", f32[6])
    for i in range(0, 2):
        for j in range(0, 2):
            for k in range(0, 2):
                with block("T", v=spatial(6, j * 3 + k)):
                    T[v] = A[v]
        for u in range(0, 5):
            with block("B", v=spatial(6, u), w=opaque(2, 0)):
                B[v] = T[v]
"""


def test_refused_where_a_box_has_a_hole(golden: Callable[[str], None]) -> None:
    """T[2] lies between what an iteration writes, but is not written."""
    s = Schedule(parse_program(PART))
    golden(refusal(lambda: s.parallel(loop(s, "i"))))


CONDITIONAL = """
def main(A: f32[4], B: f32[4]):
    T = alloc("global", f32[1])
    for i in range(0, 4):
        with block("T", v=spatial(4, i)):
            if A[v] > 2.0:
                T[0] = A[v]
        with block("B", v=spatial(4, i)):
            B[v] = T[0]
"""


def test_refused_where_a_write_may_not_happen(golden: Callable[[str], None]) -> None:
    s = Schedule(parse_program(CONDITIONAL))
    golden(refusal(lambda: s.parallel(loop(s, "i"))))


GUARDED = """
def main(A: f32[4], B: f32[4]):
    T = alloc("global", f32[1])
    for i in range(0, 4):
        with block("T", v=spatial(1, 0), w=spatial(4, i), where=i < 3):
            T[v] = A[w]
        with block("B", v=spatial(4, i)):
            B[v] = T[0]
"""


def test_refused_where_a_guard_may_leave_a_write_out(golden: Callable[[str], None]) -> None:
    s = Schedule(parse_program(GUARDED))
    golden(refusal(lambda: s.parallel(loop(s, "i"))))


def test_a_guard_that_the_reader_shares() -> None:
    before = parse_program(GUARDED.replace("v=spatial(4, i)", "v=spatial(4, i), where=i < 3"))
    s = Schedule(before)
    s.parallel(loop(s, "i"))
    same_results(before, s.program)


DIAGONAL = """
def main(A: f32[7], B: f32[4, 4]):
    for i in range(0, 4):
        for j in range(0, 4):
            with block("B", vi=spatial(4, i), vj=spatial(4, j)):
                A[vi + vj] = B[vi, vj]
"""


def test_refused_where_spatial_axes_do_not_keep_writes_apart(golden: Callable[[str], None]) -> None:
    s = Schedule(parse_program(DIAGONAL))
    golden(refusal(lambda: s.parallel(loop(s, "i"))))


def test_writes_at_the_digits_of_an_axis_are_apart() -> None:
    before = parse_program(
        'def main(A: f32[3, 4], B: f32[12]):\n    for i in range(0, 12):\n        with block("A", v=spatial(12, i)):\n'
        "            A[v // 4, v % 4] = B[v]\n"
    )
    s = Schedule(before)
    s.parallel(loop(s, "i"))
    same_results(before, s.program)


def test_within_a_step_of_a_recurrence() -> None:
    case = recurrence()
    s = Schedule(case.program)
    for name in ("G", "S"):
        s.parallel(s.loops(s.block(name))[1])
    check(case, s.program)


def test_refused_over_time(golden: Callable[[str], None]) -> None:
    s = Schedule(recurrence().program)
    golden(refusal(lambda: s.parallel(s.loops(s.block("S"))[0])))


def test_within_a_step_that_was_moved_together() -> None:
    """An iteration reads all of the state of the step before, of which no iteration of this step writes anything."""
    case = recurrence()
    for choose in (Schedule.parallel, Schedule.vectorize):
        s = Schedule(case.program)
        _, i = s.loops(s.block("S"))
        s.compute_at(s.block("G"), i)
        choose(s, i)
        check(case, s.program)


TWO_HALVES = """
def main(A: f32[8], X: f32[4]):
    for i in range(0, 4):
        with block("low", v=spatial(4, i)):
            A[v] = X[v]
        with block("high", v=spatial(4, i)):
            A[v + 4] = X[v] + 1.0
"""


def test_two_blocks_that_write_different_parts() -> None:
    before = parse_program(TWO_HALVES)
    s = Schedule(before)
    s.parallel(loop(s, "i"))
    same_results(before, s.program)


@pytest.mark.parametrize("index", ["v + 3", "4", "7 - v"])
def test_refused_for_two_blocks_that_may_write_the_same_part(index: str) -> None:
    s = Schedule(parse_program(TWO_HALVES.replace("v + 4", index)))
    if index == "7 - v":
        s.parallel(loop(s, "i"))
        return
    with pytest.raises(ScheduleError, match=r"its iterations write the same elements of A|high may use"):
        s.parallel(loop(s, "i"))


COUNTING_ON = """
def main(X: f32[5, 6], B: f32[5, 6]):
    for f in range(0, 27):
        with block("B", vi=spatial(5, (f + 3) // 6), vj=spatial(6, (f + 3) % {wide})):
            B[vi, vj] = X[vi, vj] + 1.0
"""


def test_the_later_part_of_a_fused_loop() -> None:
    """Its iterations count on from where the first part ends."""
    program = parse_program(COUNTING_ON.format(wide=6))
    s = Schedule(program)
    s.parallel(s.loops(s.block("B"))[0])
    same_results(program, s.program)


def test_refused_where_a_part_of_a_fused_loop_comes_back() -> None:
    s = Schedule(parse_program(COUNTING_ON.format(wide=3)))
    with pytest.raises(ScheduleError, match="its iterations write the same elements of B"):
        s.parallel(s.loops(s.block("B"))[0])


INTERLEAVED = """
def main(X: f32[24], A: f32[24]):
    for i in range(0, 2):
        for j in range(0, 3):
            for k in range(0, 3):
                with block("low", v=spatial(24, i * 12 + j * 4 + k)):
                    A[v] = X[v] + 1.0
            for u in range(0, {wide}):
                with block("high", w=spatial(24, i * 12 + j * 4 + {first} + u)):
                    A[w] = X[w] + 2.0
"""


@pytest.mark.parametrize("name", ["i", "j"])
def test_iterations_that_fill_one_window_after_another(name: str) -> None:
    """Two blocks that write parts of each window, the same ones even, as long as none reaches into the next."""
    program = parse_program(INTERLEAVED.format(wide=2, first=2))
    s = Schedule(program)
    s.parallel(loop(s, name))
    same_results(program, s.program)


def test_refused_where_windows_overlap() -> None:
    s = Schedule(parse_program(INTERLEAVED.format(wide=2, first=3)))
    with pytest.raises(ScheduleError, match="high may use what another iteration writes to A"):
        s.parallel(loop(s, "j"))
