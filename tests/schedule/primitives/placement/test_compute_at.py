"""`compute_at`: a producer moves into a loop of its consumers."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from tests.schedule.programs import CASES, blur, conv2d, matmul, recurrence, rows, stencil, symbolic_rows
from tests.schedule.running import check, loop, refusal, same_results, transition

from weft.loop import parse_program
from weft.schedule import Schedule
from weft.support.errors import ScheduleError


def test_an_element_each(golden: Callable[[str], None]) -> None:
    case = CASES["bias_relu"]()
    s = Schedule(case.program)
    _, j = s.loops(s.block("D"))
    s.compute_at(s.block("C"), j)
    check(case, s.program)
    golden(transition(case.program, s.program))


def test_a_halo_is_computed_anew(golden: Callable[[str], None]) -> None:
    case = stencil()
    s = Schedule(case.program)
    outer, _ = s.split(s.loops(s.block("C"))[0], [None, 4])
    s.compute_at(s.block("B"), outer)
    s.compute_at(s.block("A"), outer)
    check(case, s.program)
    golden(transition(case.program, s.program))


def test_symbolic(golden: Callable[[str], None]) -> None:
    case = symbolic_rows()
    s = Schedule(case.program)
    i, j = s.loops(s.block("B"))
    _, piece = s.split(j, [None, 4])
    s.compute_at(s.block("S"), i)
    s.compute_at(s.block("A"), i)
    s.vectorize(piece)
    check(case, s.program)
    golden(transition(case.program, s.program))


def test_padding_into_a_tile_of_a_convolution() -> None:
    for stride in (1, 2):
        case = conv2d(stride=stride)
        s = Schedule(case.program)
        o, i, j = s.loops(s.block("Z"))
        (io, ii), (jo, ji) = s.split(i, [None, 2]), s.split(j, [None, 4])
        s.reorder([io, jo, o, ii, ji])
        s.compute_at(s.block("Y"), jo)
        s.compute_at(s.block("P"), jo)
        s.parallel(io)
        check(case, s.program)


def test_an_alignment_is_positive() -> None:
    s = Schedule(stencil().program)
    with pytest.raises(ScheduleError, match="no length is a multiple of 0"):
        s.compute_at(s.block("B"), s.loops(s.block("C"))[0], align=0)


def test_into_two_levels() -> None:
    case = blur()
    s = Schedule(case.program)
    i, j = s.loops(s.block("B"))
    s.compute_at(s.block("A"), i)
    s.compute_at(s.block("A"), j)
    assert [s.extent(f) for f in s.loops(s.block("A"))] == [5, 6, 3]
    check(case, s.program)


def test_a_result_of_several_values() -> None:
    case = CASES["argmax"]()
    s = Schedule(case.program)
    s.compute_at(s.block("top"), s.loops(s.block("out"))[0])
    check(case, s.program)


def test_before_the_first_of_several_consumers() -> None:
    case = rows()
    s = Schedule(case.program)
    i, _ = s.loops(s.block("out"))
    s.compute_at(s.block("total"), i)
    s.compute_at(s.block("apart"), i)
    s.compute_at(s.block("most"), i)
    assert [b.name for b in s.blocks()] == ["most", "apart", "total", "out"]
    s.parallel(i)
    check(case, s.program)


def test_an_index_from_memory_needs_the_whole() -> None:
    case = CASES["gather"]()
    s = Schedule(case.program)
    (i,) = s.loops(s.block("B"))
    s.compute_at(s.block("A"), i)
    assert s.extent(s.loops(s.block("A"))[-1]) == 6
    check(case, s.program)


def test_after_fusing_and_splitting_the_consumer() -> None:
    case = blur()
    s = Schedule(case.program)
    outer, _ = s.split(s.fuse(s.loops(s.block("B"))), [None, 4])
    s.compute_at(s.block("A"), outer)
    check(case, s.program)


def test_into_a_tile_with_holes() -> None:
    """With the tile loops swapped an iteration needs every fourth element; the box holds those between them, too."""
    case = stencil()
    s = Schedule(case.program)
    outer, inner = s.split(s.loops(s.block("C"))[0], [None, 4])
    s.reorder([inner, outer])
    s.compute_at(s.block("B"), inner)
    check(case, s.program)


def test_a_copy_of_an_input() -> None:
    case = matmul()
    s = Schedule(case.program)
    i, _, k = s.loops(s.block("C"))
    s.compute_at(s.cache_read(s.block("C"), "A", "local"), i)
    s.compute_at(s.cache_read(s.block("C"), "B", "local"), k)
    check(case, s.program)


@pytest.mark.parametrize(
    "read", ["A[9 - v]", "A[v // 2]", "A[v % 5]", "A[v // 3 * 3 + v % 3]", "A[(v + 4) % 10]", "A[min(v + 2, 9)]"]
)
def test_reads_of_another_form(read: str) -> None:
    """Backwards, repeated, around, in digits, wrapped, and clipped: what can't be worked out is the whole."""
    s = Schedule(parse_program(READ.replace("READ", read)))
    before = s.program
    s.compute_at(s.block("A"), s.split(s.loops(s.block("B"))[0], [None, 5])[0])
    same_results(before, s.program)


READ = """
def main(X: f32[10], B: f32[10]):
    A = alloc("global", f32[10])
    for i in range(0, 10):
        with block("A", v=spatial(10, i)):
            A[v] = X[v] * 2.0
    for j in range(0, 10):
        with block("B", v=spatial(10, j)):
            B[v] = READ
"""


def test_in_a_parallel_loop_each_iteration_gets_its_own(golden: Callable[[str], None]) -> None:
    case = stencil()
    s = Schedule(case.program)
    (i,) = s.loops(s.block("C"))
    s.parallel(i)
    s.compute_at(s.block("B"), i)
    check(case, s.program)
    golden(str(s.program))


def test_refused_in_a_vectorized_loop_that_shares_a_halo(golden: Callable[[str], None]) -> None:
    s = Schedule(stencil(4).program)
    (i,) = s.loops(s.block("C"))
    s.vectorize(i)
    golden(refusal(lambda: s.compute_at(s.block("B"), i)))


def test_refused_for_an_output(golden: Callable[[str], None]) -> None:
    s = Schedule(CASES["bias_relu"]().program)
    golden(refusal(lambda: s.compute_at(s.block("E"), s.loops(s.block("D"))[0])))


def test_refused_without_all_consumers(golden: Callable[[str], None]) -> None:
    s = Schedule(rows().program)
    golden(refusal(lambda: s.compute_at(s.block("apart"), s.loops(s.block("out"))[0])))


def test_refused_where_it_is_already(golden: Callable[[str], None]) -> None:
    s = Schedule(rows().program)
    _, j = s.loops(s.block("apart"))
    golden(refusal(lambda: s.compute_at(s.block("apart"), j)))


@pytest.mark.parametrize("at", [0, 1])
def test_apart_from_the_start_of_its_reduction(at: int) -> None:
    """Each element has got its initial value in the loops before, and is updated in one iteration of those of the consumer."""
    case = CASES["bias_relu"]()
    s = Schedule(case.program)
    *_, k = s.loops(s.block("C"))
    s.decompose_reduction(s.block("C"), k)
    s.compute_at(s.block("C"), s.loops(s.block("D"))[at])
    assert [b.name for b in s.blocks()] == ["C_init", "C", "D", "E"]
    check(case, s.program)


WINDOW_OF_SUMS = """
def main(A: f32[6, 3], D: f32[4]):
    C = alloc("global", f32[6])
    for i in range(0, 6):
        for k in range(0, 3):
            with block("C", vi=spatial(6, i), vk=reduce(3, k)):
                with init():
                    C[vi] = 0.0
                C[vi] = C[vi] + A[vi, vk]
    for i_1 in range(0, 4):
        with block("D", vi_1=spatial(4, i_1)):
            D[vi_1] = C[vi_1] + C[vi_1 + 2]
"""


def test_refused_for_a_decomposed_reduction(golden: Callable[[str], None]) -> None:
    """What is needed again would be computed anew, and what is started elsewhere would count twice."""
    s = Schedule(parse_program(WINDOW_OF_SUMS))
    s.decompose_reduction(s.block("C"), s.loops(s.block("C"))[1])
    golden(refusal(lambda: s.compute_at(s.block("C"), s.loops(s.block("D"))[0])))


def test_refused_where_the_start_would_come_later() -> None:
    s = Schedule(parse_program(WINDOW_OF_SUMS))
    s.decompose_reduction(s.block("C"), s.loops(s.block("C"))[1])
    with pytest.raises(ScheduleError, match="its consumer C is not in the loop i_1"):
        s.compute_at(s.block("C_init"), s.loops(s.block("D"))[0])


def test_refused_where_an_input_changes_in_between(golden: Callable[[str], None]) -> None:
    s = Schedule(parse_program(OVERWRITTEN))
    golden(refusal(lambda: s.compute_at(s.block("T"), loop(s, "j"))))


OVERWRITTEN = """
def main(A: f32[4], B: f32[4]):
    T = alloc("global", f32[4])
    for i in range(0, 4):
        with block("T", vi=spatial(4, i)):
            T[vi] = A[vi] * 2.0
    for u in range(0, 4):
        with block("A", vi=spatial(4, u)):
            A[vi] = 0.0
    for j in range(0, 4):
        with block("B", vi=spatial(4, j)):
            B[vi] = T[vi] + 1.0
"""


def test_refused_where_only_a_part_is_reduced(golden: Callable[[str], None]) -> None:
    s = Schedule(parse_program(PARTIAL))
    golden(refusal(lambda: s.compute_at(s.block("T"), loop(s, "j"))))


PARTIAL = """
def main(A: f32[4, 6], B: f32[4]):
    T = alloc("global", f32[4])
    for i in range(0, 4):
        for k in range(0, 3):
            with block("T", vi=spatial(4, i), vk=reduce(6, k)):
                with init():
                    T[vi] = 0.0
                T[vi] = T[vi] + A[vi, vk]
    for j in range(0, 4):
        with block("B", vi=spatial(4, j)):
            B[vi] = T[vi] + 1.0
"""


def test_refused_where_its_own_input_would_not_be_complete(golden: Callable[[str], None]) -> None:
    """A box that holds more than is needed would read elements that are made later: no harm, but not provably so."""
    s = Schedule(parse_program(SHARED))
    golden(refusal(lambda: s.compute_at(s.block("T"), loop(s, "j"))))


SHARED = """
def main(A: f32[4, 4], B: f32[4, 4]):
    Q = alloc("global", f32[4, 4])
    T = alloc("global", f32[4, 4])
    for i in range(0, 4):
        for u in range(0, 4):
            with block("Q", vi=spatial(4, i), vj=spatial(4, u)):
                Q[vi, vj] = A[vi, vj] * 2.0
        for t in range(0, 4):
            with block("T", vi=spatial(4, i), vj=spatial(4, t)):
                T[vi, vj] = Q[3 - vi, vj] + 1.0
        for j in range(0, 4):
            with block("B", vi=spatial(4, i), vj=spatial(4, j)):
                B[vi, vj] = T[vi, vj] + 1.0
"""


def test_refused_for_effects_outside_blocks(golden: Callable[[str], None]) -> None:
    s = Schedule(
        parse_program(
            OVERWRITTEN.replace('with block("A", vi=spatial(4, u)):', "if u < 2:").replace("A[vi] = 0.0", "A[u] = 0.0")
        )
    )
    golden(refusal(lambda: s.compute_at(s.block("T"), loop(s, "j"))))


def test_an_input_that_changes_before_is_no_obstacle() -> None:
    before = parse_program(OVERWRITTEN.replace("A[vi] = 0.0", "B[vi] = 0.0").replace('block("A"', 'block("B0"'))
    s = Schedule(before)
    s.compute_at(s.block("T"), loop(s, "j"))
    same_results(before, s.program)


def test_a_step_of_a_recurrence(golden: Callable[[str], None]) -> None:
    """The state that is read is that of the step before; what the step writes lies elsewhere."""
    case = recurrence()
    s = Schedule(case.program)
    _, i = s.loops(s.block("S"))
    s.compute_at(s.block("G"), i)
    check(case, s.program)
    golden(str(s.program))


def test_refused_out_of_a_recurrence(golden: Callable[[str], None]) -> None:
    s = Schedule(recurrence().program)
    golden(refusal(lambda: s.compute_at(s.block("G"), s.loops(s.block("out"))[0])))


def test_refused_where_the_same_step_is_overwritten(golden: Callable[[str], None]) -> None:
    """S is changed in place: a row that is computed later would see what an earlier one wrote."""
    s = Schedule(parse_program(IN_PLACE))
    golden(refusal(lambda: s.compute_at(s.block("G"), loop(s, "j"))))


IN_PLACE = """
def main(S: f32[3], W: f32[3, 3]):
    G = alloc("global", f32[3])
    for t in range(0, 4):
        for i in range(0, 3):
            for k in range(0, 3):
                with block("G", vi=spatial(3, i), vk=reduce(3, k)):
                    with init():
                        G[vi] = 0.0
                    G[vi] = G[vi] + S[vk] * W[vk, vi]
        for j in range(0, 3):
            with block("S", vt=ordered(4, t), vi=spatial(3, j)):
                S[vi] = G[vi]
"""


def test_out_of_a_loop_in_which_its_input_is_made_again() -> None:
    """A is computed in the loop of B, some of it twice; wherever B goes, it finds the same in A."""
    case = blur()
    s = Schedule(case.program)
    s.compute_at(s.block("A"), s.loops(s.block("B"))[0])
    s.cache_write(s.block("B"), "local")
    s.compute_at(s.block("B"), s.loops(s.block("B_write"))[1])
    check(case, s.program)


CHANGING = """
def main(S: f32[3], C: f32[4, 3]):
    Q = alloc("global", f32[3])
    P = alloc("global", f32[4, 3])
    for t in range(0, 4):
        for i in range(0, 3):
            with block("Q", vi=spatial(3, i)):
                Q[vi] = S[vi] * 2.0
        for j in range(0, 3):
            with block("P", vt=spatial(4, t), vi=spatial(3, j)):
                P[vt, vi] = Q[vi] + 1.0
        for k in range(0, 3):
            with block("S", vt=ordered(4, t), vi=spatial(3, k)):
                S[vi] = S[vi] + 1.0
    for u in range(0, 4):
        for v in range(0, 3):
            with block("C", vt=spatial(4, u), vi=spatial(3, v)):
                C[vt, vi] = P[vt, vi]
"""


def test_refused_out_of_a_loop_in_which_its_input_changes(golden: Callable[[str], None]) -> None:
    s = Schedule(parse_program(CHANGING))
    golden(refusal(lambda: s.compute_at(s.block("P"), loop(s, "u"))))
    with pytest.raises(ScheduleError, match="Q may have changed what P reads when it runs there"):
        s.compute_inline(s.block("P"))
    with pytest.raises(ScheduleError, match="S, which comes later, writes what Q reads"):
        s.compute_inline(s.block("Q"))


WRITTEN_TWICE = """
def main(X: f32[3], U: f32[4, 3], C: f32[4, 3]):
    Q = alloc("global", f32[3])
    T = alloc("global", f32[3])
    P = alloc("global", f32[4, 3])
    for a in range(0, 3):
        with block("Q", vi=spatial(3, a)):
            Q[vi] = X[vi]
    for t in range(0, 4):
        for i in range(0, 3):
            with block("T", vi=spatial(3, i)):
                T[vi] = Q[vi] + 1.0
        for j in range(0, 3):
            with block("P", vt=spatial(4, t), vi=spatial(3, j)):
                P[vt, vi] = T[vi] * U[vt, vi]
        for k in range(0, 3):
            with block("Q2", vi=spatial(3, k)):
                Q[vi] = X[vi] * 2.0
    for u in range(0, 4):
        for v in range(0, 3):
            with block("C", vt=spatial(4, u), vi=spatial(3, v)):
                C[vt, vi] = P[vt, vi]
"""


def test_refused_out_of_a_loop_that_overwrites_what_its_input_is_made_of() -> None:
    """T is made of the first Q in the first iteration, of the second one in all others."""
    s = Schedule(parse_program(WRITTEN_TWICE))
    with pytest.raises(ScheduleError, match="T may have changed what P reads when it runs there"):
        s.compute_at(s.block("P"), loop(s, "u"))


def test_refused_out_of_a_loop_that_sums_its_input(golden: Callable[[str], None]) -> None:
    """In the loop the block sees sums that grow; after it, only the last."""
    s = Schedule(parse_program(GROWING))
    golden(refusal(lambda: s.compute_at(s.block("P"), loop(s, "u"))))


GROWING = """
def main(A: f32[4], C: f32[4]):
    Q = alloc("global", f32[1])
    P = alloc("global", f32[4])
    for k in range(0, 4):
        with block("Q", v=spatial(1, 0), vk=reduce(4, k)):
            with init():
                Q[v] = 0.0
            Q[v] = Q[v] + A[vk]
        with block("P", vk=spatial(4, k)):
            P[vk] = Q[0]
    for u in range(0, 4):
        with block("C", vi=spatial(4, u)):
            C[vi] = P[vi]
"""


def test_where_guards_cut_off_what_splits_of_splits_have_too_much() -> None:
    """All of A runs once: the second guard says nothing of an axis, but that a digit of it is one."""
    program = parse_program(
        """
def main(X: f32[5], B: f32[5]):
    A = alloc("global", f32[5])
    for i_0 in range(0, 3):
        for i_1_0 in range(0, 2):
            for i_1_1 in range(0, 2):
                with block("A", vi=spatial(5, i_0 * 2 + i_1_0 * 2 + i_1_1), where=(
                        i_0 * 2 + i_1_0 * 2 + i_1_1 < 5 and i_1_0 * 2 + i_1_1 < 2)):
                    reads(X[vi])
                    writes(A[vi])
                    A[vi] = X[vi] + 1.0
    for j in range(0, 5):
        with block("B", vj=spatial(5, j)):
            reads(A[vj])
            writes(B[vj])
            B[vj] = A[vj] * 2.0
"""
    )
    s = Schedule(program)
    s.compute_at(s.block("A"), s.loops(s.block("B"))[0])
    same_results(program, s.program)


STARTED = """
def main(X: f32[3, 4], B: f32[9]):
    S = alloc("global", f32[4])
    for i in range(0, 4):
        with block("S_init", v=spatial(4, i)):
            S[v] = 0.0
    for k in range(0, 3):
        for j in range(0, 4):
            with block("S", v=spatial(4, j), vk=reduce(3, k)):
                S[v] = S[v] + X[vk, v]
    for p in range(0, 9):
        with block("B", w=spatial(9, p)):
            B[w] = select(2 <= w and w < 6, S[w - {pad}], 0.0)
"""


def test_updates_that_are_started_elsewhere() -> None:
    """Padding is skipped: each sum is still made once, after its start."""
    program = parse_program(STARTED.format(pad=2))
    s = Schedule(program)
    s.compute_at(s.block("S"), loop(s, "p"))
    same_results(program, s.program)


def test_refused_for_updates_that_would_be_made_twice() -> None:
    s = Schedule(parse_program(STARTED.format(pad="min(w, 2)")))
    with pytest.raises(ScheduleError, match="the block S_init writes the same buffer as S"):
        s.compute_at(s.block("S"), loop(s, "p"))


TILED = """
def main(X: f32[3, 4], B: f32[4]):
    S = alloc("global", f32[4])
    for o in range(0, 2):
        for i in range(0, 2):
            with block("S_init", v=spatial(4, {start} * 2 + i)):
                S[v] = 0.0
        for k in range(0, 3):
            for j in range(0, 2):
                with block("S", v=spatial(4, o * 2 + j), vk=reduce(3, k)):
                    S[v] = S[v] + X[vk, v]
    for p in range(0, 4):
        with block("B", w=spatial(4, p)):
            B[w] = S[w]
"""


def test_updates_that_leave_the_loop_of_their_start() -> None:
    program = parse_program(TILED.format(start="o"))
    s = Schedule(program)
    s.compute_at(s.block("S"), loop(s, "p"))
    same_results(program, s.program)


def test_refused_for_updates_that_are_started_in_another_iteration() -> None:
    s = Schedule(parse_program(TILED.format(start="(1 - o)")))
    with pytest.raises(ScheduleError, match="the block S_init writes the same buffer as S"):
        s.compute_at(s.block("S"), loop(s, "p"))
