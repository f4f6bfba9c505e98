"""Sums whose terms are no whole steps are filled up with zeros as they are fetched, so that no term has a condition."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import pytest
from tests.lower.threaded import run_case
from tests.schedule.programs import matmul

from weft.cost import Candidate, SharedTile, cheapest, shared_tile_plans
from weft.cost.rules.shared_tile import plain_product
from weft.lower import lower
from weft.schedule import schedule_program
from weft.targets.cuda_machines import cuda

TARGET = cuda("sm_90")
"""The machine of the measured products."""

TILES = (
    SharedTile(4, 8, 4, 4, 8, run=4, filled=True),
    SharedTile(4, 8, 4, 4, 8, run=4, parts=2, filled=True),
    SharedTile(4, 8, 4, 4, 8, run=4, groups=2, filled=True),
    SharedTile(4, 8, 4, 4, 8, run=4, copies=3, filled=True),
)


def taking(tile: SharedTile) -> Callable[[Sequence[Candidate[Any]]], Candidate[Any]]:
    """Chooses *tile*, with or without unrolled steps, which must be a candidate."""

    def choose(candidates: Sequence[Candidate[Any]]) -> Candidate[Any]:
        if not isinstance(candidates[0].decision, SharedTile):
            return cheapest(candidates)
        return next(c for c in candidates if c.decision == tile)

    return choose


@pytest.mark.parametrize("tile", TILES, ids=str)
def test_a_filled_sum_is_right_and_none_of_its_terms_has_a_condition(tile: SharedTile) -> None:
    made = matmul(32, 40 if tile.parts > 1 else 64, 34)
    flat = lower(schedule_program(made.program, TARGET, taking(tile)).program, TARGET, verify=True)
    run_case(made, flat, TARGET)
    assert '_pad = alloc("global"' not in str(flat)  # zeros are made where they are fetched
    assert tile.copies > 1 or "if " not in str(flat)  # nor has a fetch: it would wait for the one before
    lines = str(flat).splitlines()
    sums = [
        n
        for n, line in enumerate(lines)
        if "_shared[" in line and " * " in line.partition("_shared[")[2] and "] + " in line
    ]
    assert sums
    assert not any(lines[n - 1].strip().startswith("if ") for n in sums)


def test_whole_steps_are_estimated_to_pay_for_products_of_few_rows() -> None:
    for columns in (2600, 10000):
        best = min(shared_tile_plans(plain_product(32, columns, 1, 650), TARGET), key=lambda c: c.cycles).decision
        assert best.filled
        assert best.parts > 1


def test_whole_sums_are_not_filled() -> None:
    plans = shared_tile_plans(plain_product(32, 2600, 1, 640), TARGET)
    assert not any(c.decision.filled for c in plans)
