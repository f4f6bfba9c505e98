"""`decompose_reduction`: the start of a reduction becomes a block of its own."""

from __future__ import annotations

from collections.abc import Callable

from tests.schedule.programs import CASES, conv2d, matmul, stencil, symbolic_rows
from tests.schedule.refusing import refused
from tests.schedule.running import check, loop, refusal, same_results, transition

from weft import te
from weft.ir import Expr
from weft.loop import parse_program
from weft.schedule import Schedule
from weft.support.dtypes import f32


def test_before_the_reduction(golden: Callable[[str], None]) -> None:
    case = matmul()
    s = Schedule(case.program)
    i, j, k = s.loops(s.block("C"))
    s.reorder([i, k, j])
    s.vectorize(j)
    init = s.decompose_reduction(s.block("C"), k)
    assert init == s.block("C_init")
    check(case, s.program)
    golden(transition(case.program, s.program))


def test_further_out() -> None:
    case = conv2d()
    for depth in range(3):
        s = Schedule(case.program)
        s.decompose_reduction(s.block("Y"), s.loops(s.block("Y"))[depth])
        check(case, s.program)


def test_tiles_that_do_not_divide(golden: Callable[[str], None]) -> None:
    case = symbolic_rows()
    s = Schedule(case.program)
    i, k = s.loops(s.block("S"))
    (io, ii), (ko, ki) = s.split(i, [None, 2]), s.split(k, [None, 4])
    s.reorder([io, ko, ii, ki])
    s.decompose_reduction(s.block("S"), ko)
    check(case, s.program)
    golden(transition(case.program, s.program))


def test_of_several_values() -> None:
    case = CASES["argmax"]()
    s = Schedule(case.program)
    s.decompose_reduction(s.block("top"), s.loops(s.block("top"))[1])
    check(case, s.program)


def test_with_its_consumer_in_the_loop() -> None:
    case = CASES["bias_relu"]()
    s = Schedule(case.program)
    i, *_ = s.loops(s.block("C"))
    s.reverse_compute_at(s.block("D"), i)
    s.decompose_reduction(s.block("C"), i)
    check(case, s.program)


def test_of_a_consumer_of_reductions_in_one_loop() -> None:
    case = CASES["rows"]()
    s = Schedule(case.program)
    i, _ = s.loops(s.block("out"))
    for name in ("total", "apart", "most"):
        s.compute_at(s.block(name), i)
    s.decompose_reduction(s.block("total"), s.loops(s.block("total"))[1])
    s.decompose_reduction(s.block("most"), i)
    check(case, s.program)


def test_refused_inside_the_reduction(golden: Callable[[str], None]) -> None:
    s = Schedule(matmul().program)
    i, j, k = s.loops(s.block("C"))
    s.reorder([k, i, j])
    golden(refusal(lambda: s.decompose_reduction(s.block("C"), i)))


def test_refused_for_an_unrelated_loop(golden: Callable[[str], None]) -> None:
    s = Schedule(CASES["bias_relu"]().program)
    golden(refusal(lambda: s.decompose_reduction(s.block("C"), s.loops(s.block("D"))[0])))


def test_refused_without_an_initialisation(golden: Callable[[str], None]) -> None:
    s = Schedule(CASES["bias_relu"]().program)
    golden(refusal(lambda: s.decompose_reduction(s.block("D"), s.loops(s.block("D"))[0])))


def test_refused_twice() -> None:
    s = Schedule(matmul().program)
    *_, k = s.loops(s.block("C"))
    s.decompose_reduction(s.block("C"), k)
    assert "C has no initialisation" in refusal(lambda: s.decompose_reduction(s.block("C"), k))


def overlapping_sums() -> Schedule:
    """Sums of which neighbouring iterations need the same, so that they are computed twice."""
    x, k = te.placeholder((6, 3), f32, "X"), te.reduce_axis(3, "k")
    a = te.compute((6,), lambda i: te.sum_(x[i, k], [k]), "A")

    def pair(i: Expr) -> Expr:
        return a[i] + a[i + 1]

    s = Schedule(te.to_program([x], [te.compute((5,), pair, "B")]))
    s.compute_at(s.block("A"), s.loops(s.block("B"))[0])
    return s


def test_refused_where_sums_are_computed_again(golden: Callable[[str], None]) -> None:
    """Started once for all iterations, the second time would add to the first."""
    s = overlapping_sums()
    golden(refusal(lambda: s.decompose_reduction(s.block("A"), s.loops(s.block("A"))[0])))


def test_a_repeated_sum_is_started_each_time() -> None:
    s = overlapping_sums()
    s.decompose_reduction(s.block("A"), s.loops(s.block("A"))[1])


def test_refused_for_a_loop_over_results_and_reduction(golden: Callable[[str], None]) -> None:
    s = Schedule(matmul().program)
    fused = s.fuse(s.loops(s.block("C"))[1:])
    golden(refusal(lambda: s.decompose_reduction(s.block("C"), fused)))


def test_refused_where_it_does_not_start_first(golden: Callable[[str], None]) -> None:
    s = Schedule(parse_program(BACKWARDS))
    golden(refusal(lambda: s.decompose_reduction(s.block("B"), loop(s, "k"))))


BACKWARDS = """
def main(A: f32[3], B: f32[1]):
    for k in range(0, 3):
        with block("B", v=spatial(1, 0), vk=reduce(3, 2 - k)):
            with init():
                B[v] = 0.0
            B[v] = B[v] + A[vk]
"""


def test_a_halo_of_elementwise_work_has_nothing_to_decompose() -> None:
    s = Schedule(stencil().program)
    assert "B has no initialisation" in refusal(lambda: s.decompose_reduction(s.block("B"), s.loops(s.block("B"))[0]))


def test_beside_a_part_of_the_sum_that_goes_on() -> None:
    """The first part of a loop that was cut starts each result, the second goes on with it."""
    case = matmul()
    s = Schedule(case.program)
    i, _, k = s.loops(s.block("C"))
    s.partition(k, [1])
    s.decompose_reduction(s.block("C"), i)
    check(case, s.program)


def test_beside_a_part_of_the_results() -> None:
    case = matmul()
    s = Schedule(case.program)
    i, j, _ = s.loops(s.block("C"))
    s.partition(j, [2])
    s.decompose_reduction(s.block("C"), i)
    s.decompose_reduction(s.block("C_1"), i)
    check(case, s.program)


LEFT_OVER = """
def main(A: f32[3, 4, 5], D: f32[3, 4]):
    C = alloc("global", f32[5])
    for t in range(0, 3):
        for i in range(0, 4):
            for k in range(0, 5):
                with block("C", vt=spatial(3, t), vi=spatial(4, i), vk=reduce(5, k)):
                    with init():
                        C[vi] = 0.0
                    C[vi] = C[vi] + A[vt, vi, vk]
            with block("D", wt=spatial(3, t), wi=spatial(4, i)):
                D[wt, wi] = C[{index}]
"""


def test_refused_where_what_was_left_is_read() -> None:
    """Each iteration but the last reads what the sum of the next one has left from before."""
    s = Schedule(parse_program(LEFT_OVER.format(index="wi + 1")))
    refused(
        lambda: s.decompose_reduction(s.block("C"), loop(s, "i")),
        "D uses the results of C in the loop, too",
        'with block("D"',
        "choose a loop inside the one that both are in",
    )


def test_results_that_are_read_where_they_are_made() -> None:
    program = parse_program(LEFT_OVER.format(index="wi"))
    s = Schedule(program)
    s.decompose_reduction(s.block("C"), loop(s, "i"))
    same_results(program, s.program)
