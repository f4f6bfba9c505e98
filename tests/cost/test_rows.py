"""How many rows go through each step of a row-by-row computation together."""

from __future__ import annotations

import pytest

from weft.cost import RowsAtOnce, cheapest, patch_plans, rows_at_once_plans
from weft.targets import cpu, parse_target

MACHINE = cpu("avx2").having(l1=32 << 10)


def rows(extents: list[int], touched: int) -> int:
    decision = cheapest(list(rows_at_once_plans(extents, touched, 2, MACHINE))).decision
    assert isinstance(decision, RowsAtOnce)
    return decision.rows


@pytest.mark.parametrize(("touched", "together"), [(80, 16), (256, 8), (1024, 2), (4096, 1), (1 << 20, 1)])
def test_what_they_touch_stays_in_the_first_level(touched: int, together: int) -> None:
    assert rows([1000], touched) == together


def test_enough_are_left_for_every_core() -> None:
    assert rows([16], 80) == (4 if MACHINE.cores > 2 else 8 if MACHINE.cores == 1 else 4)
    assert rows([1], 80) == 1
    assert rows([64, 3], 80) == 3  # rather than two, and one apart


def test_few_are_left_for_a_last_step() -> None:
    assert rows([64, 11], 80) == 11
    assert rows([640, 17], 80) == 16


def test_cores_share_the_stages_of_few_patches_but_a_grid_has_no_loop_around_it() -> None:
    machine, grid = MACHINE.having(cores=8), parse_target("opencl").having(cores=8)
    assert [c.decision.patches for c in patch_plans([2], machine)] == [False, True]
    assert [c.decision.patches for c in patch_plans([64], machine)] == [True, False]
    assert [c.decision.patches for c in patch_plans([2], grid)] == [True]
