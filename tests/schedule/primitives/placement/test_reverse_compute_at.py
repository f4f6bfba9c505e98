"""`reverse_compute_at`: a consumer moves into a loop of its producers."""

from __future__ import annotations

from collections.abc import Callable

from tests.schedule.compiling import check_compiled
from tests.schedule.programs import (
    CASES,
    bias_relu,
    conv2d,
    matmul,
    outer_sum,
    row_sums,
    rows,
    symbolic_matmul,
    symbolic_rows,
    symmetric,
    two_outputs,
)
from tests.schedule.running import check, loop, refusal, same_results, transition

from weft.loop import parse_program
from weft.schedule import Schedule


def test_an_element_each(golden: Callable[[str], None]) -> None:
    case = CASES["bias_relu"]()
    s = Schedule(case.program)
    _, j, _ = s.loops(s.block("C"))
    s.reverse_compute_at(s.block("D"), j)
    s.reverse_compute_at(s.block("E"), j)
    check(case, s.program)
    golden(transition(case.program, s.program))


def test_a_tile_that_does_not_divide(golden: Callable[[str], None]) -> None:
    case = symbolic_matmul()
    s = Schedule(case.program)
    i, j, k = s.loops(s.block("C"))
    io, ii = s.split(i, [None, 4])
    s.reorder([io, k, ii, j])
    s.reverse_compute_at(s.block("D"), io)
    check(case, s.program)
    golden(transition(case.program, s.program))


def test_after_decomposing() -> None:
    case = conv2d()
    s = Schedule(case.program)
    o, i, j, *reduced = s.loops(s.block("Y"))
    (jo, ji) = s.split(j, [None, 4])
    s.reorder([o, i, jo, *reduced, ji])
    s.decompose_reduction(s.block("Y"), reduced[0])
    s.reverse_compute_at(s.block("Z"), jo)
    s.vectorize(s.loops(s.block("Z"))[-1])
    check(case, s.program)


def test_a_copy_back() -> None:
    case = matmul()
    s = Schedule(case.program)
    copy = s.cache_write(s.block("C"), "local")
    i, j, _ = s.loops(s.block("C"))
    (io, ii), (jo, ji) = s.split(i, [None, 2]), s.split(j, [None, 3])
    s.reorder([io, jo, ii, ji])
    s.reverse_compute_at(copy, jo)
    s.parallel(s.fuse([io, jo]))
    check(case, s.program)


def test_a_reduction_spread_over_the_loops_of_its_producer() -> None:
    case = row_sums()
    s = Schedule(case.program)
    _, j = s.loops(s.block("A"))
    s.reverse_compute_at(s.block("B"), j)
    check(case, s.program)


def test_in_another_order_of_axes() -> None:
    case = two_outputs()
    s = Schedule(case.program)
    _, j = s.loops(s.block("A"))
    s.reverse_compute_at(s.block("B"), j)
    s.reverse_compute_at(s.block("C"), j)
    check(case, s.program)


def test_after_two_producers_of_which_one_is_further_out() -> None:
    case = rows()
    s = Schedule(case.program)
    i, _ = s.loops(s.block("apart"))
    s.reverse_compute_at(s.block("total"), i)
    s.reverse_compute_at(s.block("out"), i)
    assert s.loops(s.block("out"))[0] == i
    check(case, s.program)


def test_rows_of_symbolic_size() -> None:
    case = symbolic_rows(5, 7)
    s = Schedule(case.program)
    s.reverse_compute_at(s.block("B"), s.loops(s.block("S"))[0])
    s.parallel(s.loops(s.block("S"))[0])
    check_compiled(case, s.program)


def test_tiles_of_symbolic_rows() -> None:
    case = symbolic_matmul(7)
    s = Schedule(case.program)
    i0, _ = s.split(s.loops(s.block("C"))[0], [None, 4])
    s.reverse_compute_at(s.block("D"), i0)
    check_compiled(case, s.program)


def test_one_after_another() -> None:
    case = CASES["bias_relu"]()
    s = Schedule(case.program)
    i, j, _ = s.loops(s.block("C"))
    s.reverse_compute_at(s.block("D"), j)
    s.reverse_compute_at(s.block("E"), i)
    assert [len(s.loops(s.block(b))) for b in "DE"] == [2, 2]
    check_compiled(case, s.program)


def test_further_in() -> None:
    case = CASES["bias_relu"]()
    s = Schedule(case.program)
    i, j, _ = s.loops(s.block("C"))
    s.reverse_compute_at(s.block("D"), i)
    s.reverse_compute_at(s.block("D"), j)
    assert s.loops(s.block("D")) == (i, j)
    check_compiled(case, s.program)


def test_in_a_loop_that_counts_down() -> None:
    text = COUNTED.replace("spatial(10, i)", "spatial(10, 9 - i)")
    s = Schedule(parse_program(text))
    before = s.program
    s.reverse_compute_at(s.block("B"), s.split(loop(s, "i"), [None, 5])[0])
    same_results(before, s.program)


def test_in_a_loop_of_one_iteration() -> None:
    s = Schedule(parse_program(COUNTED))
    before = s.program
    s.reverse_compute_at(s.block("B"), s.split(loop(s, "i"), [1, None])[0])
    same_results(before, s.program)


def test_its_loops_run_in_lanes() -> None:
    case = CASES["bias_relu"]()
    s = Schedule(case.program)
    i, _, _ = s.loops(s.block("C"))
    s.reverse_compute_at(s.block("D"), i)
    s.vectorize(s.loops(s.block("D"))[1])
    s.parallel(i)
    check_compiled(case, s.program)


COUNTED = """
def main(X: f32[10], B: f32[10]):
    A = alloc("global", f32[10])
    for i in range(0, 10):
        with block("A", v=spatial(10, i)):
            A[v] = X[v] * 2.0
    for j in range(0, 10):
        with block("B", v=spatial(10, j)):
            B[v] = A[v] + 1.0
"""


def test_refused_where_only_a_sum_is_finished(golden: Callable[[str], None]) -> None:
    s = Schedule(CASES["bias_relu"]().program)
    *_, k = s.loops(s.block("C"))
    golden(refusal(lambda: s.reverse_compute_at(s.block("D"), k)))


def test_refused_for_tiles_with_holes(golden: Callable[[str], None]) -> None:
    """An iteration makes every fourth row; the box between the first and the last of them is not complete."""
    s = Schedule(bias_relu(9).program)
    i, *_ = s.loops(s.block("C"))
    outer, inner = s.split(i, [None, 4])
    s.reorder([inner, outer])
    golden(refusal(lambda: s.reverse_compute_at(s.block("D"), inner)))


def test_refused_for_a_halo(golden: Callable[[str], None]) -> None:
    s = Schedule(CASES["stencil"]().program)
    (i,) = s.loops(s.block("B"))
    golden(refusal(lambda: s.reverse_compute_at(s.block("C"), i)))


def test_refused_for_producers_along_different_axes(golden: Callable[[str], None]) -> None:
    s = Schedule(outer_sum().program)
    (i,) = s.loops(s.block("B"))
    s.reverse_compute_at(s.block("C"), i)  # A is complete, so a column at a time is fine
    check(outer_sum(), s.program)
    s = Schedule(parse_program(DIAGONAL))
    golden(refusal(lambda: s.reverse_compute_at(s.block("C"), loop(s, "i"))))


DIAGONAL = """
def main(X: f32[4], C: f32[4, 4]):
    A = alloc("global", f32[4])
    B = alloc("global", f32[4])
    for i in range(0, 4):
        with block("A", v=spatial(4, i)):
            A[v] = X[v] * 2.0
        with block("B", v=spatial(4, i)):
            B[v] = X[v] + 1.0
    for p in range(0, 4):
        for q in range(0, 4):
            with block("C", vp=spatial(4, p), vq=spatial(4, q)):
                C[vp, vq] = A[vp] - B[vq]
"""


def test_refused_where_one_buffer_is_read_both_ways(golden: Callable[[str], None]) -> None:
    s = Schedule(symmetric().program)
    i, _ = s.loops(s.block("A"))
    golden(refusal(lambda: s.reverse_compute_at(s.block("B"), i)))


def test_refused_where_another_producer_comes_later(golden: Callable[[str], None]) -> None:
    s = Schedule(outer_sum().program)
    (i,) = s.loops(s.block("A"))
    golden(refusal(lambda: s.reverse_compute_at(s.block("C"), i)))


def test_refused_where_another_producer_is_not_complete(golden: Callable[[str], None]) -> None:
    """In the shared loop i only a row of Q is there, but the block reads a column."""
    s = Schedule(parse_program(COLUMN))
    golden(refusal(lambda: s.reverse_compute_at(s.block("C"), loop(s, "j"))))


COLUMN = """
def main(X: f32[4, 4], C: f32[4, 4]):
    Q = alloc("global", f32[4, 4])
    A = alloc("global", f32[4, 4])
    for i in range(0, 4):
        for u in range(0, 4):
            with block("Q", vi=spatial(4, i), vj=spatial(4, u)):
                Q[vi, vj] = X[vi, vj] * 2.0
        for j in range(0, 4):
            with block("A", vi=spatial(4, i), vj=spatial(4, j)):
                A[vi, vj] = X[vi, vj] + 1.0
    for p in range(0, 4):
        for q in range(0, 4):
            with block("C", vi=spatial(4, p), vj=spatial(4, q)):
                C[vi, vj] = A[vi, vj] - Q[vj, vi]
"""


def test_a_row_that_is_complete_is_enough() -> None:
    before = parse_program(COLUMN.replace("Q[vj, vi]", "Q[vi, 3 - vj]"))
    s = Schedule(before)
    s.reverse_compute_at(s.block("C"), loop(s, "j"))


def test_refused_where_iterations_would_repeat_it(golden: Callable[[str], None]) -> None:
    s = Schedule(rows().program)
    _, k = s.loops(s.block("most"))
    golden(refusal(lambda: s.reverse_compute_at(s.block("apart"), k)))


def test_refused_where_its_result_is_read_before_it(golden: Callable[[str], None]) -> None:
    s = Schedule(parse_program(IN_PLACE))
    golden(refusal(lambda: s.reverse_compute_at(s.block("C"), loop(s, "i"))))


IN_PLACE = """
def main(A: f32[4], C: f32[4], D: f32[4]):
    T = alloc("global", f32[4])
    for i in range(0, 4):
        with block("T", v=spatial(4, i)):
            T[v] = A[v] * 2.0
    for u in range(0, 4):
        with block("D", v=spatial(4, u)):
            D[v] = C[v]
    for j in range(0, 4):
        with block("C", v=spatial(4, j)):
            C[v] = T[v] + 1.0
"""


def test_refused_without_a_producer_there(golden: Callable[[str], None]) -> None:
    s = Schedule(CASES["bias_relu"]().program)
    golden(refusal(lambda: s.reverse_compute_at(s.block("E"), s.loops(s.block("C"))[0])))


def test_refused_where_a_guard_leaves_instances_out(golden: Callable[[str], None]) -> None:
    s = Schedule(
        parse_program(
            IN_PLACE.replace("v=spatial(4, j))", "v=spatial(4, j), where=j != 2)").replace("D[v] = C[v]", "D[v] = 0.0")
        )
    )
    golden(refusal(lambda: s.reverse_compute_at(s.block("C"), loop(s, "i"))))


def test_refused_before_its_producer() -> None:
    s = Schedule(CASES["bias_relu"]().program)
    message = refusal(lambda: s.reverse_compute_at(s.block("C"), s.loops(s.block("D"))[0]))
    assert message.startswith("reverse_compute_at(block C, loop i_1) is not legal: C comes before the loop i_1\n")
