"""`split`: one loop becomes a nest of several."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from tests.schedule.programs import CASES, matmul, symbolic_matmul
from tests.schedule.running import check, loop, refusal, transition

from weft.loop import parse_program
from weft.schedule import Schedule


def test_by_a_factor_that_divides(golden: Callable[[str], None]) -> None:
    case = matmul(4, 6, 2)
    s = Schedule(case.program)
    _, j, _ = s.loops(s.block("C"))
    s.split(j, [None, 2])
    check(case, s.program)
    golden(transition(case.program, s.program))


def test_by_a_factor_that_does_not_divide(golden: Callable[[str], None]) -> None:
    case = matmul()
    s = Schedule(case.program)
    i, _, k = s.loops(s.block("C"))
    s.split(i, [None, 2, 2])
    s.split(k, [2, None])
    check(case, s.program)
    golden(transition(case.program, s.program))


def test_symbolic(golden: Callable[[str], None]) -> None:
    case = symbolic_matmul()
    s = Schedule(case.program)
    i, _, _ = s.loops(s.block("C"))
    s.split(i, [None, 4])
    check(case, s.program)
    golden(transition(case.program, s.program))


def test_of_a_piece() -> None:
    case = matmul(7)
    s = Schedule(case.program)
    i, _, _ = s.loops(s.block("C"))
    _, piece = s.split(i, [None, 5])
    s.split(piece, [None, 3])
    check(case, s.program)


def test_into_more_than_there_is() -> None:
    case = matmul()
    s = Schedule(case.program)
    outer, inner = s.split(s.loops(s.block("C"))[0], [None, 64])
    assert (s.extent(outer), s.extent(inner)) == (1, 64)
    check(case, s.program)


def test_returns_the_loops_outermost_first() -> None:
    s = Schedule(matmul(6).program)
    i, j, k = s.loops(s.block("C"))
    made = s.split(i, [3, None])
    assert s.loops(s.block("C")) == (*made, j, k)
    assert [s.extent(f) for f in made] == [3, 2]


def test_an_old_reference_leads_to_the_outermost_loop() -> None:
    case = matmul(6)
    s = Schedule(case.program)
    i, *_ = s.loops(s.block("C"))
    outer, _ = s.split(i, [None, 2])
    s.parallel(i)
    assert f"for {outer.var.name} in parallel(0, 3)" in str(s)
    check(case, s.program)


@pytest.mark.parametrize("name", CASES)
def test_every_loop_of(name: str) -> None:
    case = CASES[name]()
    s = Schedule(case.program)
    for block in s.blocks():
        for f in s.loops(block):
            s.split(f, [None, 3])
    check(case, s.program)


@pytest.mark.parametrize(
    "factors",
    [[4], [None, None], [0, None], [-1, 2], [2, 2]],
    ids=["one", "two open", "zero", "negative", "too few"],
)
def test_refused_factors(factors: list[int | None], golden: Callable[[str], None]) -> None:
    s = Schedule(matmul().program)
    golden(refusal(lambda: s.split(s.loops(s.block("C"))[0], factors)))


def test_refused_for_a_parallel_loop(golden: Callable[[str], None]) -> None:
    s = Schedule(matmul().program)
    i, *_ = s.loops(s.block("C"))
    s.parallel(i)
    golden(refusal(lambda: s.split(i, [None, 2])))


def test_refused_for_a_loop_that_is_gone(golden: Callable[[str], None]) -> None:
    s = Schedule(CASES["bias_relu"]().program)
    i, _ = s.loops(s.block("D"))
    s.compute_inline(s.block("D"))
    golden(refusal(lambda: s.split(i, [None, 2])))


def test_refused_where_a_guard_has_nowhere_to_go(golden: Callable[[str], None]) -> None:
    s = Schedule(parse_program("def main(A: f32[5]):\n    for i in range(0, 5):\n        A[i] = 1.0\n"))
    golden(refusal(lambda: s.split(loop(s, "i"), [None, 2])))
    s.split(loop(s, "i"), [None, 5])
