"""`blockize`: a nest becomes one block."""

from __future__ import annotations

from tests.schedule.programs import matmul
from tests.schedule.running import check

from weft.schedule import Schedule


def test_a_tile_of_a_matrix_product() -> None:
    case = matmul(4, 6, 8)
    s = Schedule(case.program)
    i, j, k = s.loops(s.block("C"))
    i0, i1 = s.split(i, [None, 2])
    j0, j1 = s.split(j, [None, 3])
    k0, k1 = s.split(k, [None, 4])
    s.reorder([i0, j0, k0, i1, j1, k1])
    outer = s.blockize(i1)
    assert s.loops(outer) == (i0, j0, k0)
    check(case, s.program)


def test_the_whole_nest() -> None:
    case = matmul(4, 6, 8)
    s = Schedule(case.program)
    i, _, _ = s.loops(s.block("C"))
    outer = s.blockize(i)
    assert s.loops(outer) == ()
    check(case, s.program)
