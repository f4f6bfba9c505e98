"""`double_buffer`: an intermediate of a loop's iterations gets two places, which the iterations use in turn."""

from __future__ import annotations

from collections.abc import Callable

from tests.schedule.compiling import check_compiled, lowered
from tests.schedule.programs import Case, blur, matmul, stencil
from tests.schedule.running import refusal, transition

from weft.schedule import Schedule


def tiles() -> tuple[Case, Schedule]:
    """A product that copies a tile of its left side in each iteration of its outermost loop."""
    case = matmul(4, 6, 8)
    s = Schedule(case.program)
    i, _, _ = s.loops(s.block("C"))
    s.compute_at(s.cache_read(s.block("C"), "A", "local"), i)
    return case, s


def test_of_a_tile(golden: Callable[[str], None]) -> None:
    case, s = tiles()
    before = s.program
    s.double_buffer(s.block("A_local"), s.loops(s.block("C"))[0])
    check_compiled(case, s.program)
    golden(transition(before, s.program))


def test_lowered(golden: Callable[[str], None]) -> None:
    _, s = tiles()
    s.double_buffer(s.block("A_local"), s.loops(s.block("C"))[0])
    golden(str(lowered(s.program)))


def test_two_in_one_loop() -> None:
    case = stencil()
    s = Schedule(case.program)
    (i,) = s.loops(s.block("C"))
    s.compute_at(s.block("B"), i)
    s.compute_at(s.block("A"), i)
    s.double_buffer(s.block("A"), i)
    s.double_buffer(s.block("B"), i)
    assert "double_buffer=[A, B]" in str(s)
    flat = check_compiled(case, s.program)
    assert "i % 2" in str(flat)


def test_with_padded_rows() -> None:
    case = blur(4, 8)
    s = Schedule(case.program)
    i, _ = s.loops(s.block("B"))
    s.storage_align(s.block("A"), 0, 16)
    s.compute_at(s.block("A"), i)
    s.double_buffer(s.block("A"), i)
    check_compiled(case, s.program)


def test_threads_keep_memory_of_their_own() -> None:
    case, s = tiles()
    i = s.loops(s.block("C"))[0]
    s.double_buffer(s.block("A_local"), i)
    s.parallel(i)
    flat = check_compiled(case, s.program)
    assert "% 2" not in str(flat)


def test_refused_twice(golden: Callable[[str], None]) -> None:
    _, s = tiles()
    i = s.loops(s.block("C"))[0]
    s.double_buffer(s.block("A_local"), i)
    golden(refusal(lambda: s.double_buffer(s.block("A_local"), i)))


def test_refused_outside_of_the_loop(golden: Callable[[str], None]) -> None:
    s = Schedule(stencil().program)
    golden(refusal(lambda: s.double_buffer(s.block("B"), s.loops(s.block("C"))[0])))


def test_refused_where_iterations_share_results(golden: Callable[[str], None]) -> None:
    s = Schedule(stencil().program)
    golden(refusal(lambda: s.double_buffer(s.block("B"), s.loops(s.block("B"))[0])))


def test_refused_for_an_output(golden: Callable[[str], None]) -> None:
    s = Schedule(matmul().program)
    golden(refusal(lambda: s.double_buffer(s.block("C"), s.loops(s.block("C"))[0])))


def test_refused_in_a_parallel_loop(golden: Callable[[str], None]) -> None:
    _, s = tiles()
    i = s.loops(s.block("C"))[0]
    s.parallel(i)
    golden(refusal(lambda: s.double_buffer(s.block("A_local"), i)))
