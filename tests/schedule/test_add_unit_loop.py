"""`add_unit_loop`: a block gets a loop of one iteration around it."""

from __future__ import annotations

from collections.abc import Callable

from tests.schedule.compiling import check_compiled
from tests.schedule.programs import CASES, matmul
from tests.schedule.running import refusal, transition

from weft.schedule import Schedule


def test_around_a_reduction(golden: Callable[[str], None]) -> None:
    case = matmul()
    s = Schedule(case.program)
    unit = s.add_unit_loop(s.block("C"))
    assert s.loops(s.block("C"))[-1] == unit
    check_compiled(case, s.program)
    golden(transition(case.program, s.program))


def test_is_a_place_to_compute_at() -> None:
    case = CASES["bias_relu"]()
    s = Schedule(case.program)
    here = s.add_unit_loop(s.block("D"), "here")
    s.compute_at(s.block("C"), here)
    assert s.loops(s.block("C"))[-2] == here
    check_compiled(case, s.program)


def test_refused_twice(golden: Callable[[str], None]) -> None:
    s = Schedule(matmul().program)
    s.add_unit_loop(s.block("C"))
    golden(refusal(lambda: s.add_unit_loop(s.block("C"))))
