"""`cross_thread_reduce`: the threads of a block reduce together, each a part, and then combine what they have."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from tests.schedule.programs import argmax, bias_relu, matmul, rows, symbolic_rows
from tests.schedule.running import check, refusal, transition

from weft.schedule import Schedule, Trace, replay

Golden = Callable[[str], None]


def test_a_whole_reduction(golden: Golden) -> None:
    case = matmul()
    s = Schedule(case.program)
    c = s.block("C")
    part = s.cross_thread_reduce(c, s.loops(c)[2])
    assert part.name == "C_rf"
    check(case, s.program)
    golden(transition(case.program, s.program))


def test_a_split_reduction_that_the_threads_do_not_divide(golden: Golden) -> None:
    case = matmul(3, 4, 7)
    s = Schedule(case.program)
    c = s.block("C")
    _, inner = s.split(s.loops(c)[2], [None, 4])
    s.cross_thread_reduce(c, inner, "threadIdx.y")
    check(case, s.program)
    golden(str(s.program))


def test_loops_over_results_inside_the_reduction() -> None:
    case = matmul(4, 6, 8)
    s = Schedule(case.program)
    c = s.block("C")
    i, j, k = s.loops(c)
    outer, inner = s.split(k, [2, 4])
    s.reorder([i, outer, j, inner])
    s.cross_thread_reduce(c, inner)
    check(case, s.program)


def test_a_result_of_several_values() -> None:
    case = argmax(4, 12)
    s = Schedule(case.program)
    top = next(b for b in s.blocks() if b.name.startswith("top"))
    _, inner = s.split(s.loops(top)[1], [None, 4])
    s.cross_thread_reduce(top, inner)
    check(case, s.program)


def test_symbolic_extents() -> None:
    case = symbolic_rows(3, 11)
    s = Schedule(case.program)
    reduction = s.block("S")
    _, inner = s.split(s.loops(reduction)[1], [None, 4])
    s.cross_thread_reduce(reduction, inner)
    check(case, s.program)


def test_placed_with_what_uses_it(golden: Golden) -> None:
    """Both reductions of a row in the block of threads that then uses them."""
    case = rows(4, 10)
    s = Schedule(case.program)
    s.compute_inline(s.block("apart"))
    out = s.block("out")
    i, j = s.loops(out)
    _, lane = s.split(j, [None, 4])
    for name in ("total", "most"):
        block = s.block(name)
        s.compute_at(block, i)
        s.set_scope(block, "shared")
        _, inner = s.split(s.loops(block)[1], [None, 4])
        s.cross_thread_reduce(block, inner)
    s.bind(lane, "threadIdx.x")
    s.bind(i, "blockIdx.x")
    check(case, s.program)
    golden(str(s.program))


def test_replayed_from_its_trace() -> None:
    case = bias_relu(4, 6, 8)
    s = Schedule(case.program)
    c = s.block("C")
    _, inner = s.split(s.loops(c)[2], [2, 4])
    s.cross_thread_reduce(c, inner, "threadIdx.z")
    again = Schedule(case.program)
    replay(Trace.from_json(s.trace.to_json()), again)
    assert str(again.program) == str(s.program)


def test_refused_along_blocks(golden: Golden) -> None:
    s = Schedule(matmul().program)
    c = s.block("C")
    golden(refusal(lambda: s.cross_thread_reduce(c, s.loops(c)[2], "blockIdx.x")))


def test_refused_along_results(golden: Golden) -> None:
    s = Schedule(matmul().program)
    c = s.block("C")
    golden(refusal(lambda: s.cross_thread_reduce(c, s.loops(c)[1])))


def test_refused_for_an_unknown_number_of_threads(golden: Golden) -> None:
    s = Schedule(symbolic_rows().program)
    reduction = s.block("S")
    golden(refusal(lambda: s.cross_thread_reduce(reduction, s.loops(reduction)[1])))


def test_refused_on_an_axis_that_is_taken(golden: Golden) -> None:
    s = Schedule(matmul().program)
    c = s.block("C")
    s.bind(s.loops(c)[0], "threadIdx.x")
    golden(refusal(lambda: s.cross_thread_reduce(c, s.loops(c)[2])))


@pytest.mark.parametrize("threads", [1, 2, 3])
def test_any_number_of_threads(threads: int) -> None:
    case = matmul(2, 3, 6)
    s = Schedule(case.program)
    c = s.block("C")
    _, inner = s.split(s.loops(c)[2], [None, threads])
    if threads > 1:
        s.cross_thread_reduce(c, inner)
    check(case, s.program)
