"""A thread reduces several windows below one another, and loads once what they share, whatever strides and padding."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import pytest
from tests.lower.threaded import check_threads
from tests.schedule.rules.grid.test_inline_fetches import of_operator

from weft.cost import Candidate, WindowStrip, cheapest
from weft.schedule import schedule_program
from weft.targets.grid_machines import OPENCL

CASES: dict[str, tuple[str, Sequence[tuple[int, ...]], dict[str, Any]]] = {
    "padded": ("conv2d", [(1, 3, 8, 32), (3, 1, 3, 3)], {"group": 3, "pads": (1, 1, 1, 1)}),
    "strided": ("conv2d", [(2, 3, 16, 64), (3, 1, 3, 3)], {"group": 3, "strides": (2, 2), "pads": (1, 1, 1, 1)}),
    "dilated": ("conv2d", [(1, 2, 8, 32), (2, 1, 3, 3)], {"group": 2, "dilations": (2, 2), "pads": (2, 2, 2, 2)}),
    "pool": ("max_pool2d", [(1, 4, 16, 64)], {"kernel": (3, 3), "strides": (2, 2), "pads": (1, 1, 1, 1)}),
    "pool without padding": (
        "max_pool2d",
        [(1, 4, 17, 65)],
        {"kernel": (3, 3), "strides": (2, 2), "pads": (0, 0, 0, 0)},
    ),
}


def strips_of(results: int) -> Callable[[Sequence[Candidate[Any]]], Candidate[Any]]:
    """Chooses strips of so many results, and else the cheapest."""
    wanted = WindowStrip(results)
    return lambda candidates: next((c for c in candidates if c.decision == wanted), cheapest(candidates))


@pytest.mark.parametrize("name", CASES)
def test_strips_load_less(name: str) -> None:
    of = of_operator(*CASES[name])
    alone, together = [
        check_threads(of, schedule_program(of.program, OPENCL, strips_of(n)).program, OPENCL) for n in (1, 4)
    ]
    assert together.requests < 0.8 * alone.requests
    assert together.loads < alone.loads


def test_strips_are_chosen_where_results_fill_the_device() -> None:
    asked: list[WindowStrip] = []

    def told(candidates: Sequence[Candidate[Any]]) -> Candidate[Any]:
        found = cheapest(candidates)
        asked.extend([found.decision] if isinstance(found.decision, WindowStrip) else [])
        return found

    for shape in ((32, 64, 112, 112), (1, 8, 16, 16)):
        kernel = (shape[1], 1, 3, 3)
        of = of_operator("conv2d", [shape, kernel], {"group": shape[1], "pads": (1, 1, 1, 1)})
        schedule_program(of.program, OPENCL, told)
    assert asked[0].results >= 4
    assert asked[1].results < asked[0].results
