"""What an iteration reads before it writes comes from another iteration."""

from __future__ import annotations

import pytest

from weft.loop import parse_program, verify
from weft.schedule import LoopRef, Schedule
from weft.support.errors import ScheduleError

DELAYED = """
def main(X: f32[3, 4], B: f32[3]):
    A = alloc("global", f32[4])
    for i in range(0, 3):
        with block("B", vi=spatial(3, i)):
            B[vi] = A[0]
        for j in range(0, 4):
            with block("A", vj=spatial(4, j), vk=spatial(3, i)):
                A[vj] = X[vk, vj]
"""


@pytest.mark.parametrize("kind", ["parallel", "vectorize"])
def test_a_value_from_the_iteration_before(kind: str) -> None:
    s = Schedule(parse_program(DELAYED))
    verify(s.program)
    i = s.loops(s.block("B"))[0]
    with pytest.raises(ScheduleError, match="B may use what another iteration writes to A"):
        s.apply(kind, i)


def test_an_iteration_has_no_memory_of_its_own_for_it() -> None:
    s = Schedule(parse_program(DELAYED))
    with pytest.raises(ScheduleError, match="may use what another"):
        s.double_buffer(s.block("A"), LoopRef(s.loops(s.block("B"))[0].var))


NEIGHBOURS = """
def main(S: f32[4, 4]):
    for i in range(0, 4):
        for t in range(0, 3):
            with block("S", vt=ordered(3, t), vi=spatial(4, i)):
                S[vt + 1, vi] = S[vt, 3 - vi] + 1.0
"""


def test_a_step_that_needs_what_another_iteration_made() -> None:
    s = Schedule(parse_program(NEIGHBOURS))
    with pytest.raises(ScheduleError, match="its iterations write the same elements of S"):
        s.parallel(s.loops(s.block("S"))[0])
