"""`narrow`: the axes of a block become as long as the part of them that it runs through."""

from __future__ import annotations

from collections.abc import Callable

from tests.schedule.compiling import check_compiled
from tests.schedule.programs import conv2d, matmul, pieces, symbolic_rows
from tests.schedule.running import transition

from weft.loop import parse_program, print_program
from weft.schedule import Schedule, block_of


def test_formulas_are_those_of_the_parts(golden: Callable[[str], None]) -> None:
    case = pieces()
    s = Schedule(case.program)
    s.partition(s.loops(s.block("C"))[0], [2, 3])
    before = s.program
    for ref in s.blocks():
        s.narrow(ref)
    check_compiled(case, s.program)
    golden(transition(before, s.program))


def test_sums_keep_their_starts() -> None:
    case = matmul(6, 8, 5)
    s = Schedule(case.program)
    s.partition(s.loops(s.block("C"))[0], [4])
    s.partition(s.loops(s.block("C_1"))[2], [2])
    for ref in s.blocks():
        s.narrow(ref)
    extents = [[getattr(a.extent, "value", 0) for a in r.axes] for r in [block_of(s, ref) for ref in s.blocks()]]
    assert extents == [[4, 8, 5], [2, 8, 5], [2, 8, 5]]
    check_compiled(case, s.program)
    assert print_program(parse_program(print_program(s.program))) == print_program(s.program)


def test_guards_end_what_is_run() -> None:
    case = matmul(7, 8, 3)
    s = Schedule(case.program)
    outer, _ = s.split(s.loops(s.block("C"))[0], [None, 4])
    s.partition(outer, [1])
    s.narrow(s.block("C_1"))
    check_compiled(case, s.program)
    assert "spatial(3, " in print_program(s.program)


def test_what_runs_through_all_of_its_axes_stays() -> None:
    for case in (conv2d(), symbolic_rows()):
        s = Schedule(case.program)
        for ref in s.blocks():
            s.narrow(ref)
        assert print_program(s.program) == print_program(case.program)
