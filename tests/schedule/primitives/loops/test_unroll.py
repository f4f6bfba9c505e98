"""`unroll`: iterations are written out one after another."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from tests.schedule.compiling import check_compiled
from tests.schedule.programs import CASES, matmul, recurrence, symbolic_matmul
from tests.schedule.refusing import refused
from tests.schedule.running import check, loop, transition

from weft.loop import parse_program
from weft.schedule import Schedule


def test_a_reduction(golden: Callable[[str], None]) -> None:
    case = matmul()
    s = Schedule(case.program)
    *_, k = s.loops(s.block("C"))
    s.unroll(k)
    check(case, s.program)
    golden(transition(case.program, s.program))


@pytest.mark.parametrize("level", [0, 1, 2])
def test_any_loop_of_a_nest(level: int) -> None:
    case = matmul(3, 4, 2)
    s = Schedule(case.program)
    s.unroll(s.loops(s.block("C"))[level])
    check_compiled(case, s.program)


def test_all_loops_of_a_tile() -> None:
    case = matmul(5, 6, 3)
    s = Schedule(case.program)
    *_, i1, j1 = s.tile(s.loops(s.block("C"))[:2], [2, 4])
    for f in (i1, j1):
        s.unroll(f)
    check_compiled(case, s.program)


def test_steps_in_order() -> None:
    case = recurrence()
    s = Schedule(case.program)
    s.unroll(s.loops(s.block("G"))[0])
    check_compiled(case, s.program)


def test_iterations_that_use_what_others_made() -> None:
    """What can't run in parallel can still be written out."""
    case = CASES["stencil"]()
    s = Schedule(case.program)
    (i,) = s.loops(s.block("B"))
    s.compute_at(s.block("A"), i)
    s.unroll(i)
    check_compiled(case, s.program)


def test_one_iteration() -> None:
    case = matmul()
    s = Schedule(case.program)
    s.unroll(s.add_unit_loop(s.block("C")))
    check_compiled(case, s.program)


def test_a_constant_piece_of_a_symbolic_loop() -> None:
    case = symbolic_matmul(7)
    s = Schedule(case.program)
    s.unroll(s.split(s.loops(s.block("C"))[0], [None, 2])[1])
    check_compiled(case, s.program)


def test_statements_outside_blocks() -> None:
    program = parse_program("def main(A: f32[4]):\n    for i in range(0, 4):\n        A[i] = 1.0\n")
    s = Schedule(program)
    s.unroll(loop(s, "i"))
    assert "unrolled(0, 4)" in str(s)


def test_blocks_placed_in_it_afterwards() -> None:
    case = CASES["bias_relu"]()
    s = Schedule(case.program)
    i, _ = s.loops(s.block("E"))
    s.unroll(i)
    s.compute_at(s.block("D"), i)
    check_compiled(case, s.program)


def test_refused_for_a_symbolic_loop() -> None:
    s = Schedule(symbolic_matmul().program)
    i, *_ = s.loops(s.block("C"))
    refused(
        lambda: s.unroll(i),
        "its extent is not a constant",
        "for i in range(0, n)",
        "split it by a constant factor first",
    )


@pytest.mark.parametrize("kind", ["parallel", "vectorize", "unroll"])
def test_refused_for_a_loop_with_a_kind(kind: str) -> None:
    s = Schedule(matmul().program)
    i = s.loops(s.block("C"))[0]
    s.apply(kind, i)
    shown = {"parallel": "parallel", "vectorize": "vectorized", "unroll": "unrolled"}[kind]
    refused(lambda: s.unroll(i), f"the loop is {shown} already", f"for i in {shown}(0, 5)", "choose a serial loop")
