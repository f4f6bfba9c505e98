"""`rolling_buffer`: a producer in a loop keeps what the next iteration needs again, and computes only what is new."""

from __future__ import annotations

from collections.abc import Callable

from tests.schedule.compiling import check_compiled, lowered
from tests.schedule.programs import CASES, Case, blur, conv2d, pool, stencil
from tests.schedule.running import refusal, transition

from weft.loop import Alloc, statements
from weft.schedule import Schedule


def placed(case: Case) -> Schedule:
    """A schedule in which the rows of `A` are computed where those of `B` are."""
    s = Schedule(case.program)
    s.compute_at(s.block("A"), s.loops(s.block("B"))[0])
    return s


def test_a_blur(golden: Callable[[str], None]) -> None:
    case = blur()
    s = placed(case)
    before = s.program
    first = s.rolling_buffer(s.block("A"), s.loops(s.block("B"))[0])
    assert first.name == "A_first"
    assert [s.extent(f) for f in s.loops(first)] == [2, 6]
    assert [s.extent(f) for f in s.loops(s.block("A"))] == [5, 6]
    check_compiled(case, s.program)
    golden(transition(before, s.program))


def test_lowered(golden: Callable[[str], None]) -> None:
    s = placed(blur(8, 32))
    _, j = s.loops(s.block("B"))
    s.rolling_buffer(s.block("A"), s.loops(s.block("B"))[0])
    s.vectorize(j)
    s.vectorize(s.loops(s.block("A"))[-1])
    golden(str(lowered(s.program)))


def test_in_tiles_of_columns() -> None:
    case = blur(6, 8)
    s = Schedule(case.program)
    i, j = s.loops(s.block("B"))
    outer, inner = s.split(j, [None, 4])
    s.reorder([outer, i, inner])
    s.compute_at(s.block("A"), i)
    s.rolling_buffer(s.block("A"), i)
    flat = check_compiled(case, s.program)
    assert [str(b.buffer.shape[0]) for b in statements(flat.entry.body) if isinstance(b, Alloc)] == ["12"]


def test_each_thread_rolls_its_own() -> None:
    case = blur(6, 8)
    s = Schedule(case.program)
    i, j = s.loops(s.block("B"))
    outer, inner = s.split(j, [None, 4])
    s.reorder([outer, i, inner])
    s.compute_at(s.block("A"), i)
    s.parallel(outer)
    s.rolling_buffer(s.block("A"), i)
    check_compiled(case, s.program)


def test_by_several_rows() -> None:
    case = blur(10, 6)
    s = Schedule(case.program)
    outer, _ = s.split(s.loops(s.block("B"))[0], [None, 4])
    s.compute_at(s.block("A"), outer)
    s.rolling_buffer(s.block("A"), outer)
    assert [s.extent(f) for f in s.loops(s.block("A"))] == [3, 4, 6]
    check_compiled(case, s.program)


def test_of_a_strided_window_and_a_padding() -> None:
    for stride in (1, 2):
        case = conv2d(stride=stride)
        s = Schedule(case.program)
        o, i, j = s.loops(s.block("Z"))
        s.reorder([i, o, j])
        s.compute_at(s.block("Y"), i)
        s.compute_at(s.block("P"), i)
        s.rolling_buffer(s.block("P"), i)
        check_compiled(case, s.program)


def test_of_one_of_two_stages() -> None:
    case = stencil()
    s = Schedule(case.program)
    (i,) = s.loops(s.block("C"))
    s.compute_at(s.block("B"), i)
    s.rolling_buffer(s.block("B"), i)
    check_compiled(case, s.program)


def test_later_steps() -> None:
    """The order of iterations is kept, so that splitting and cutting the loop are fine; the rows are not shared out."""
    case = blur(9, 6)
    s = placed(case)
    i, j = s.loops(s.block("B"))
    s.rolling_buffer(s.block("A"), i)
    s.partition(i, [4])
    s.split(i, [None, 3])
    s.vectorize(j)
    check_compiled(case, s.program)


def test_refused_to_share_out_the_rows(golden: Callable[[str], None]) -> None:
    s = placed(blur())
    i, _ = s.loops(s.block("B"))
    s.rolling_buffer(s.block("A"), i)
    golden(refusal(lambda: s.parallel(i)))


def test_refused_before_it_is_placed(golden: Callable[[str], None]) -> None:
    s = Schedule(blur().program)
    golden(refusal(lambda: s.rolling_buffer(s.block("A"), s.loops(s.block("B"))[0])))


def test_refused_without_an_overlap(golden: Callable[[str], None]) -> None:
    s = Schedule(pool().program)
    i, _, _, _ = s.loops(s.block("Y"))
    s.compute_at(s.block("P"), i)
    golden(refusal(lambda: s.rolling_buffer(s.block("P"), i)))


def test_refused_in_a_parallel_loop(golden: Callable[[str], None]) -> None:
    s = placed(blur())
    i, _ = s.loops(s.block("B"))
    s.parallel(i)
    golden(refusal(lambda: s.rolling_buffer(s.block("A"), i)))


def test_refused_where_the_window_stands_still(golden: Callable[[str], None]) -> None:
    s = Schedule(CASES["row_sums"]().program)
    j, _ = s.loops(s.block("C"))
    s.compute_at(s.block("B"), j)
    golden(refusal(lambda: s.rolling_buffer(s.block("B"), j)))


def test_refused_where_its_input_is_made_in_the_loop(golden: Callable[[str], None]) -> None:
    s = Schedule(stencil().program)
    (i,) = s.loops(s.block("C"))
    s.compute_at(s.block("B"), i)
    s.compute_at(s.block("A"), i)
    golden(refusal(lambda: s.rolling_buffer(s.block("B"), i)))
