"""Products scheduled without search: the order in which their tiles are gone through."""

from __future__ import annotations

import pytest

from weft.ops import OPERATORS
from weft.schedule.rules import schedule_program
from weft.support.dtypes import f32
from weft.targets.cpu import cpu
from weft.te import placeholder, to_program


@pytest.mark.parametrize(("k", "n", "near"), [(6, 961, True), (512, 961, False), (40, 130, True)])
def test_whole_rows_are_written_where_all_panels_stay_near(k: int, n: int, near: bool) -> None:
    """A matrix that fits the first-level cache is gone through for each tile of rows; else all rows are for each panel of it."""
    a, b = placeholder((400, 50, k), f32, "a"), placeholder((400, k, n), f32, "b")
    s = schedule_program(to_program([a, b], OPERATORS["matmul"]([a, b], {})), cpu("avx512"))
    names = [f.var.name for f in s.loops(s.blocks()[-1])]
    assert (names.index("ax1_0") < names.index("ax2_0")) == near
