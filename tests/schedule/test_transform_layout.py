"""`transform_layout`: an intermediate in another layout."""

from __future__ import annotations

import numpy as np
from tests.schedule.compiling import check_compiled
from tests.schedule.programs import Case
from tests.schedule.running import check, refusal

from weft import te
from weft.schedule import Schedule
from weft.support.dtypes import f32


def _chain() -> Case:
    x = te.placeholder((4, 6), f32, "x")
    t = te.compute((4, 6), lambda i, j: x[i, j] * 2, "t")
    y = te.compute((4, 6), lambda i, j: t[i, j] + 1, "y")
    return Case(te.to_program([x], [y]), lambda a: [np.asarray(a) * 2 + 1], 1)


def test_columns_in_blocks() -> None:
    case = _chain()
    s = Schedule(case.program)
    s.transform_layout(s.block("t"), "t", "i, j -> j // 2, i, j % 2")
    assert "f32[3, 4, 2]" in str(s)
    check(case, s.program)
    check_compiled(case, s.program)


def test_a_parameter_is_refused() -> None:
    s = Schedule(_chain().program)
    message = refusal(lambda: s.transform_layout(s.block("t"), "x", "i, j -> j, i"))
    assert "x is a parameter of the function" in message
