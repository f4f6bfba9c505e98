"""`software_pipeline`: the statements of a loop's body work on different iterations at a time."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from tests.schedule.compiling import check_compiled, lowered
from tests.schedule.programs import Case, bias_relu, blur, matmul, symbolic_matmul
from tests.schedule.running import refusal, transition

from weft.loop import Alloc, statements
from weft.schedule import LoopRef, Schedule


def rows() -> tuple[Case, Schedule, LoopRef]:
    """A loop over rows that makes a product, adds to it, and cuts it off."""
    case = bias_relu(6, 4, 3)
    s = Schedule(case.program)
    i, _ = s.loops(s.block("E"))
    s.compute_at(s.block("D"), i)
    s.compute_at(s.block("C"), i)
    return case, s, i


def test_two_stages(golden: Callable[[str], None]) -> None:
    case = matmul(4, 6, 8)
    s = Schedule(case.program)
    i, _, _ = s.loops(s.block("C"))
    s.compute_at(s.cache_read(s.block("C"), "A", "local"), i)
    before = s.program
    left = s.software_pipeline(i, [0, 1])
    assert s.extent(left) == 3
    check_compiled(case, s.program)
    golden(transition(before, s.program))


def test_lowered(golden: Callable[[str], None]) -> None:
    case = matmul(4, 32, 8)
    s = Schedule(case.program)
    i, j, k = s.loops(s.block("C"))
    s.compute_at(s.cache_read(s.block("C"), "A", "local"), i)
    s.decompose_reduction(s.block("C"), j)
    s.reorder([k, j])
    s.vectorize(j)
    s.software_pipeline(i, [0, 1, 1])
    golden(str(lowered(s.program)))


@pytest.mark.parametrize("stages", [[0, 0, 1], [0, 1, 1], [0, 1, 2], [0, 2, 3], [0, 0, 5]], ids=str)
def test_three_statements(stages: list[int]) -> None:
    case, s, i = rows()
    s.software_pipeline(i, stages)
    check_compiled(case, s.program)


def test_only_the_iterations_under_way_have_places() -> None:
    case, s, i = rows()
    s.software_pipeline(i, [0, 1, 2])
    flat = check_compiled(case, s.program)
    sizes = {k.buffer.name: str(k.buffer.shape[0]) for k in statements(flat.entry.body) if isinstance(k, Alloc)}
    assert sizes == {"C": "8", "D": "8"}


def test_along_a_reduction() -> None:
    """The tiles of both sides are copied while those before them are multiplied."""
    case = matmul(4, 4, 8)
    s = Schedule(case.program)
    i, j, k = s.loops(s.block("C"))
    ko, ki = s.split(k, [None, 2])
    s.reorder([ko, i, j, ki])
    for name in "AB":
        s.compute_at(s.cache_read(s.block("C"), name, "local"), ko)
    s.software_pipeline(ko, [0, 0, 1])
    check_compiled(case, s.program)


def test_inside_a_parallel_loop() -> None:
    case = bias_relu(8, 4, 3)
    s = Schedule(case.program)
    i, j = s.loops(s.block("E"))
    outer, inner = s.split(j, [None, 2])
    s.reorder([outer, i, inner])
    s.compute_at(s.block("D"), i)
    s.compute_at(s.block("C"), i)
    s.parallel(outer)
    s.software_pipeline(i, [0, 1, 1])
    check_compiled(case, s.program)


def test_refused_to_start_all_results_in_the_places_of_some(golden: Callable[[str], None]) -> None:
    _, s, i = rows()
    left = s.software_pipeline(i, [0, 1, 2])
    golden(refusal(lambda: s.decompose_reduction(s.block("C"), left)))


def test_each_result_is_started_in_its_place() -> None:
    case, s, i = rows()
    s.software_pipeline(i, [0, 1, 2])
    _, j, _ = s.loops(s.block("C"))
    s.decompose_reduction(s.block("C"), j)
    check_compiled(case, s.program)


def test_refused_for_a_window(golden: Callable[[str], None]) -> None:
    s = Schedule(blur().program)
    i, _ = s.loops(s.block("B"))
    s.compute_at(s.block("A"), i)
    golden(refusal(lambda: s.software_pipeline(i, [0, 1])))


def test_refused_where_a_result_is_started_a_stage_before(golden: Callable[[str], None]) -> None:
    s = Schedule(matmul().program)
    i, j, _ = s.loops(s.block("C"))
    s.decompose_reduction(s.block("C"), j)
    golden(refusal(lambda: s.software_pipeline(i, [0, 1])))


@pytest.mark.parametrize("stages", [[0, 1], [0, 0, 0], [1, 1, 2], [0, 2, 1], [0, 1, 6]], ids=str)
def test_refused_stages(stages: list[int], golden: Callable[[str], None]) -> None:
    _, s, i = rows()
    golden(refusal(lambda: s.software_pipeline(i, stages)))


def test_refused_for_an_unknown_length(golden: Callable[[str], None]) -> None:
    s = Schedule(symbolic_matmul().program)
    i, _ = s.loops(s.block("D"))
    s.compute_at(s.block("C"), i)
    golden(refusal(lambda: s.software_pipeline(i, [0, 1])))
