"""`reorder`: nested loops change places."""

from __future__ import annotations

import itertools
from collections.abc import Callable

import pytest
from tests.schedule.programs import CASES, conv2d, matmul, symbolic_matmul
from tests.schedule.running import check, loop, refusal, same_results, transition

from weft.loop import parse_program
from weft.schedule import Schedule
from weft.support.errors import ScheduleError


def test_all_loops(golden: Callable[[str], None]) -> None:
    case = matmul()
    s = Schedule(case.program)
    i, j, k = s.loops(s.block("C"))
    s.reorder([k, j, i])
    check(case, s.program)
    golden(transition(case.program, s.program))


def test_loops_not_named_stay_where_they_are() -> None:
    case = conv2d()
    s = Schedule(case.program)
    o, i, j, rc, ri, rj = s.loops(s.block("Y"))
    s.reorder([rj, o])
    assert s.loops(s.block("Y")) == (rj, i, j, rc, ri, o)
    check(case, s.program)


def test_tiles_that_do_not_divide() -> None:
    case = symbolic_matmul()
    s = Schedule(case.program)
    i, j, k = s.loops(s.block("C"))
    (io, ii), (jo, ji), (ko, ki) = (s.split(f, [None, 3]) for f in (i, j, k))
    s.reorder([ko, ii, jo, ki, io, ji])
    check(case, s.program)


@pytest.mark.parametrize("order", list(itertools.permutations(range(4))), ids=str)
def test_every_order_of_split_loops(order: tuple[int, ...]) -> None:
    case = matmul(3, 5, 5)
    s = Schedule(case.program)
    _, j, k = s.loops(s.block("C"))
    loops = [*s.split(j, [None, 2]), *s.split(k, [None, 3])]
    s.reorder([loops[n] for n in order])
    check(case, s.program)


def test_with_a_copy_made_in_the_same_iteration() -> None:
    case = matmul()
    s = Schedule(case.program)
    i, j, k = s.loops(s.block("C"))
    s.reorder([k, i, j])
    s.compute_at(s.cache_read(s.block("C"), "A", "local"), i)
    s.reorder([i, k])
    check(case, s.program)


def test_a_result_and_what_finishes_it_in_the_same_iteration() -> None:
    case = CASES["bias_relu"]()
    s = Schedule(case.program)
    i, j, _ = s.loops(s.block("C"))
    s.reverse_compute_at(s.block("D"), j)
    s.reorder([j, i])
    check(case, s.program)


def test_refused_where_a_partial_result_is_used(golden: Callable[[str], None]) -> None:
    s = Schedule(parse_program(PREFIX))
    k, i = s.loops(s.block("B"))
    golden(refusal(lambda: s.reorder([i, k])))


PREFIX = """
def main(A: f32[4, 3], B: f32[4], C: f32[4, 3]):
    for k in range(0, 3):
        for i in range(0, 4):
            with block("B", vi=spatial(4, i), vk=reduce(3, k)):
                with init():
                    B[vi] = 0.0
                B[vi] = B[vi] + A[vi, vk]
            with block("C", vi=spatial(4, i), vk=spatial(3, k)):
                C[vi, vk] = B[vi]
"""


def test_refused_where_another_iteration_is_read(golden: Callable[[str], None]) -> None:
    s = Schedule(parse_program(SHIFTED))
    i, j = s.loops(s.block("A"))
    golden(refusal(lambda: s.reorder([j, i])))


SHIFTED = """
def main(A: f32[5, 5], B: f32[4, 4]):
    for i in range(0, 4):
        for j in range(0, 4):
            with block("A", vi=spatial(4, i), vj=spatial(4, j)):
                A[vi, vj] = 1.0
            with block("B", vi=spatial(4, i), vj=spatial(4, j)):
                B[vi, vj] = A[vi, vj] + A[vi + 1, vj]
"""


def test_refused_where_a_sum_could_begin_in_the_middle(golden: Callable[[str], None]) -> None:
    """Loops that run over results and reduction together begin a sum at their first iteration only in the order they have."""
    s = Schedule(CASES["rows"]().program)
    i, q = s.loops(s.block("total"))
    outer, inner = s.split(s.fuse([i, q]), [None, 8])
    golden(refusal(lambda: s.reorder([inner, outer])))


def test_refused_where_a_sum_would_take_a_value_twice(golden: Callable[[str], None]) -> None:
    s = Schedule(parse_program(REPEATED))
    r, k = s.loops(s.block("B"))
    golden(refusal(lambda: s.reorder([k, r])))


REPEATED = """
def main(A: f32[3], B: f32[1]):
    for r in range(0, 2):
        for k in range(0, 3):
            with block("B", v=spatial(1, 0), vk=reduce(3, k)):
                with init():
                    B[v] = 0.0
                B[v] = B[v] + A[vk]
"""


def test_refused_for_ordered_axes(golden: Callable[[str], None]) -> None:
    s = Schedule(parse_program(SCAN))
    t, u, i = s.loops(s.block("B"))
    s.reorder([i, t, u])
    golden(refusal(lambda: s.reorder([u, t])))


SCAN = """
def main(A: f32[3, 2, 4], B: f32[4]):
    for t in range(0, 3):
        for u in range(0, 2):
            for i in range(0, 4):
                with block("B", vt=ordered(3, t), vu=ordered(2, u), vi=spatial(4, i)):
                    B[vi] = B[vi] * 2.0 + A[vt, vu, vi]
"""


def test_refused_where_a_range_would_leave_its_scope(golden: Callable[[str], None]) -> None:
    s = Schedule(parse_program(SCAN.replace("range(0, 2)", "range(0, t + 1)")))
    t, u, _ = s.loops(s.block("B"))
    golden(refusal(lambda: s.reorder([u, t])))


def test_refused_across_other_statements(golden: Callable[[str], None]) -> None:
    s = Schedule(CASES["rows"]().program)
    i, j = s.loops(s.block("out"))
    s.compute_at(s.block("total"), i)
    golden(refusal(lambda: s.reorder([j, i])))


def test_refused_for_statements_outside_blocks(golden: Callable[[str], None]) -> None:
    s = Schedule(parse_program(BARE))
    k, i = s.loops(s.block("B"))
    golden(refusal(lambda: s.reorder([i, k])))


BARE = """
def main(A: f32[3], B: f32[4, 3]):
    for k in range(0, 3):
        for i in range(0, 4):
            with block("B", vi=spatial(4, i), vk=spatial(3, k)):
                B[vi, vk] = 0.0
            A[k] = B[i, k]
"""


TURNS = """
def main(X: f32[24], A: f32[24]):
    for i in range(0, 2):
        for j in range(0, 3):
            for k in range(0, 3):
                with block("low", v=spatial(24, i * 12 + j * 4 + k)):
                    A[v] = X[v] + 1.0
            with block("high", w=spatial(24, j * 4 + i * 12 + {first})):
                A[w] = X[w] + 2.0
"""


def test_two_blocks_that_take_turns() -> None:
    """Modulo 4, one writes 0 to 2 and the other 3."""
    program = parse_program(TURNS.format(first=3))
    s = Schedule(program)
    s.reorder([loop(s, "j"), loop(s, "i")])
    same_results(program, s.program)


@pytest.mark.parametrize("first", [4, 6])
def test_refused_for_two_blocks_that_come_to_the_same_place(first: int) -> None:
    s = Schedule(parse_program(TURNS.format(first=first)))
    with pytest.raises(ScheduleError, match="high may use what another iteration writes to A"):
        s.reorder([loop(s, "j"), loop(s, "i")])


PADDED = """
def main(X: f32[3, 4], B: f32[3, 6]):
    A = alloc("global", f32[3, 4])
    for i in range(0, 3):
        for j in range(0, 6):
            with block("A", v=spatial(3, i), w=spatial(4, j - 1), where=({where})):
                A[v, w] = X[v, w] * 2.0
            with block("B", y=spatial(3, i), z=spatial(6, j)):
                B[y, z] = select(1 <= z and z < 5, A[y, z - 1], 0.0)
"""


def test_padding_needs_nothing_that_was_written() -> None:
    program = parse_program(PADDED.format(where="0 < j and j < 5"))
    s = Schedule(program)
    s.reorder([loop(s, "j"), loop(s, "i")])
    same_results(program, s.program)


def test_refused_where_a_guard_leaves_out_more_than_padding() -> None:
    s = Schedule(parse_program(PADDED.format(where="0 < j and j < 4")))
    with pytest.raises(ScheduleError, match="B may use what another iteration writes to A"):
        s.reorder([loop(s, "j"), loop(s, "i")])
