"""`annotate`: notes on loops and blocks."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from tests.schedule.programs import matmul
from tests.schedule.running import check, refusal, transition

from weft.schedule import Schedule
from weft.schedule.trace import Trace, replay
from weft.support.errors import ScheduleError


def test_a_loop_and_a_block(golden: Callable[[str], None]) -> None:
    case = matmul()
    s = Schedule(case.program)
    i, _, k = s.loops(s.block("C"))
    s.annotate(k, "times", 4)
    s.annotate(s.block("C"), "why", "it is hot")
    s.annotate(i, "share", 0.5)
    check(case, s.program)
    golden(transition(case.program, s.program))


def test_a_note_is_replaced_and_repeated() -> None:
    case = matmul()
    s = Schedule(case.program)
    i, *_ = s.loops(s.block("C"))
    i0, _ = s.split(i, [None, 2])
    s.annotate(i0, "times", 4)
    s.annotate(i0, "times", 5)
    s.annotate(i0, "other", 1)
    again = Schedule(case.program)
    replay(Trace.from_json(s.trace.to_json()), again)
    assert str(again) == str(s)
    check(case, s.program)


def test_refused_for_what_is_no_name(golden: Callable[[str], None]) -> None:
    s = Schedule(matmul().program)
    golden(refusal(lambda: s.annotate(s.block("C"), "not a name", 1)))


def test_refused_for_what_only_a_primitive_may_say() -> None:
    s = Schedule(matmul().program)
    with pytest.raises(ScheduleError, match="the annotation tensor is made by the primitive that it belongs to"):
        s.annotate(s.block("C"), "tensor", "x86.dot_u8i8_16x4")
