"""`pack`: a block reads a copy in another layout."""

from __future__ import annotations

from tests.schedule.compiling import check_compiled
from tests.schedule.programs import matmul
from tests.schedule.running import check, refusal

from weft.schedule import Schedule


def test_panels_of_columns() -> None:
    case = matmul(4, 6, 8)
    s = Schedule(case.program)
    block = s.block("C")
    copy = s.pack(block, "B", "k, j -> j // 2, k, j % 2", "global")
    check(case, s.program)
    j0, *_ = s.loops(copy)
    s.parallel(j0)
    check_compiled(case, s.program)


def test_refused() -> None:
    s = Schedule(matmul(4, 6, 8).program)
    block = s.block("C")
    assert "does not read one buffer called X" in refusal(lambda: s.pack(block, "X", "k, j -> j, k", "global"))
    refusal(lambda: s.pack(block, "B", "k, j -> k", "global"))
