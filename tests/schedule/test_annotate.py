"""`annotate`: notes on loops and blocks."""

from __future__ import annotations

from tests.schedule.programs import matmul
from tests.schedule.running import check, refusal

from weft.schedule import Schedule


def test_a_loop_and_a_block_carry_notes() -> None:
    case = matmul(4, 6, 2)
    s = Schedule(case.program)
    block = s.block("C")
    i, _, _ = s.loops(block)
    s.annotate(i, "note", 1)
    s.annotate(i, "note", 2)
    s.annotate(block, "source", "example")
    check(case, s.program)
    assert "note=2" in str(s)
    assert "note=1" not in str(s)
    assert "example" in str(s)


def test_refused() -> None:
    s = Schedule(matmul(4, 6, 2).program)
    i, _, _ = s.loops(s.block("C"))
    assert "'no name' is not a name" in refusal(lambda: s.annotate(i, "no name", 1))
