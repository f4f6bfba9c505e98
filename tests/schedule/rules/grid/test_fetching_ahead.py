"""Tiles in shared memory whose parts are fetched ahead: products and convolutions, right and without races, on odd sizes too."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import pytest
from tests.lower.threaded import check_threads
from tests.schedule.programs import Case, matmul
from tests.schedule.rules.grid.test_inline_fetches import of_operator

from weft.cost import NO_TILE, Candidate, SharedTile, cheapest, shared_tile_plans
from weft.cost.rules.shared_tile import plain_product
from weft.ir import TRUE
from weft.loop import ASYNC_COPY, Call, statements
from weft.lower import lower
from weft.schedule import Schedule, schedule_program
from weft.targets import Target
from weft.targets.cuda_machines import cuda
from weft.targets.grid_machines import OPENCL

SM_80 = cuda("sm_80")
CASES: dict[str, Callable[[], Case]] = {
    "product": lambda: matmul(64, 64, 48),
    "product of odd columns": lambda: matmul(32, 45, 48),
    "images": lambda: of_operator(
        "conv2d_implicit", [(5, 16, 5, 5), (144, 32)], {"kernel": (3, 3), "pads": (1, 1, 1, 1), "merged": True}
    ),
    "images at a stride": lambda: of_operator(
        "conv2d_implicit", [(3, 32, 9, 7), (32, 32)], {"kernel": (1, 1), "strides": (2, 2), "merged": True}
    ),
}


def ahead(made: Case, copies: int) -> Schedule:
    """Schedules a product in tiles of so many copies, offered or not."""
    wanted = SharedTile(4, 8, 4, 4, 8, unroll=True, lanes=4, run=4, copies=copies)

    def choose(candidates: Sequence[Candidate[Any]]) -> Candidate[Any]:
        return Candidate(wanted, 0.0) if isinstance(candidates[0].decision, SharedTile) else cheapest(candidates)

    return schedule_program(made.program, SM_80, choose)


@pytest.mark.parametrize("copies", [2, 3])
@pytest.mark.parametrize("name", CASES)
def test_results(name: str, copies: int) -> None:
    made = CASES[name]()
    s = ahead(made, copies)
    calls = [x for f in lower(s.program, SM_80).functions for x in statements(f.body) if isinstance(x, Call)]
    copied = [x for x in calls if x.callee == ASYNC_COPY]
    assert copied
    assert any(x.args[3] is not TRUE for x in copied) == (name == "images")  # padding is filled with zeros
    assert check_threads(made, s.program, SM_80).ways <= 4


def tiles(target: Target, rows: int = 512) -> list[SharedTile]:
    return [c.decision for c in shared_tile_plans(plain_product(rows, 512, 1, 512), target) if c.decision != NO_TILE]


def test_facts_decide() -> None:
    assert any(t.copies > 1 for t in tiles(SM_80))
    assert all(t.copies == 1 for t in tiles(OPENCL))
    assert all(t.copies == 1 or 500 % t.high == 0 for t in tiles(SM_80, 500))
    assert all(t.copies == 1 or t.groups == 1 for t in tiles(SM_80))
