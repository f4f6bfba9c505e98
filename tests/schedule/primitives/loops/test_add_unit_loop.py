"""`add_unit_loop`: a block gets a loop of one iteration around it."""

from __future__ import annotations

from collections.abc import Callable

from tests.schedule.compiling import check_compiled
from tests.schedule.programs import CASES, matmul, symbolic_matmul
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


def test_is_fused_split_and_run_like_others() -> None:
    case = matmul()
    s = Schedule(case.program)
    unit = s.add_unit_loop(s.block("C"))
    s.reorder([unit, *s.loops(s.block("C"))[:3]])
    s.parallel(s.fuse([unit, s.loops(s.block("C"))[1]]))
    check_compiled(case, s.program)


def test_around_one_block_of_several() -> None:
    case = matmul()
    s = Schedule(case.program)
    start = s.decompose_reduction(s.block("C"), s.loops(s.block("C"))[2])
    assert len(s.loops(start)) == 2
    s.add_unit_loop(start)
    assert [len(s.loops(b)) for b in s.blocks()] == [3, 3]
    check_compiled(case, s.program)


def test_symbolic() -> None:
    case = symbolic_matmul()
    s = Schedule(case.program)
    assert s.extent(s.add_unit_loop(s.block("D"))) == 1
    check_compiled(case, s.program)
