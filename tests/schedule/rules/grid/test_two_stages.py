"""Few long rows are reduced in two stages: parts by the blocks of a grid, then the parts of each row by another kernel."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pytest
from tests.lower.threaded import check_threads
from tests.schedule.programs import Case, case
from tests.schedule.rules.grid.test_inline_fetches import of_operator

from weft.cost import Candidate, ReductionParts, cheapest
from weft.ops import OPERATORS
from weft.schedule import schedule_program
from weft.support.dtypes import f32
from weft.targets.cuda_machines import cuda
from weft.targets.grid_machines import OPENCL
from weft.te import placeholder


def of_best(*shape: int) -> Case:
    """The place of the largest element of each row."""
    x = placeholder(shape, f32, "x")
    found = list(OPERATORS["argmax"]([x], {"axis": -1}))
    return case([x], found, lambda v: [np.argmax(v, axis=-1, keepdims=True)])


def of_differences() -> Case:
    """How much each element of a row is below the largest."""
    x = placeholder((2, 4096), f32, "x")
    (most,) = OPERATORS["reduce_max"]([x], {"axes": (1,), "keepdims": True})
    return case([x], list(OPERATORS["sub"]([most, x], {})), lambda v: [v.max(1, keepdims=True) - v])


CASES: dict[str, Callable[[], Case]] = {
    "rows": lambda: of_operator("reduce_sum", [(2, 4096)], {"axes": (1,), "keepdims": False}),
    "columns": lambda: of_operator("reduce_max", [(2048, 3)], {"axes": (0,), "keepdims": True}),
    "two axes and an epilogue": lambda: of_operator("reduce_l2", [(3, 64, 64)], {"axes": (1, 2), "keepdims": False}),
    "parts of different lengths": lambda: of_operator("reduce_min", [(5003,)], {"axes": (0,), "keepdims": False}),
    "elements beside their row's value": of_differences,
    "the best and its place": lambda: of_best(2, 4096),
    "the best of one row": lambda: of_best(4096),
}


def parts_of(parts: int) -> Callable[[Sequence[Candidate[Any]]], Candidate[Any]]:
    """Chooses so many parts, and else the cheapest."""
    wanted = ReductionParts(parts)
    return lambda candidates: next((c for c in candidates if c.decision == wanted), cheapest(candidates))


@pytest.mark.parametrize("name", CASES)
def test_parts_are_reduced_by_blocks(name: str) -> None:
    of = CASES[name]()
    whole, parted = [schedule_program(of.program, OPENCL, parts_of(n)).program for n in (1, 4)]
    check_threads(of, parted, OPENCL)
    kept = [str(p).count('alloc("global"') for p in (whole, parted)]  # results of parts, for another kernel
    assert kept[1] > kept[0]


@pytest.mark.parametrize(("shape", "is_split"), [((1 << 22,), True), ((8, 1 << 18), True), ((128, 1024), False)])
def test_parts_are_chosen_where_rows_are_few(shape: tuple[int, ...], is_split: bool) -> None:
    asked: list[ReductionParts] = []

    def told(candidates: Sequence[Candidate[Any]]) -> Candidate[Any]:
        found = cheapest(candidates)
        asked.extend([found.decision] if isinstance(found.decision, ReductionParts) else [])
        return found

    of = of_operator("reduce_sum", [shape], {"axes": (len(shape) - 1,), "keepdims": False})
    schedule_program(of.program, cuda("sm_90"), told)
    assert (asked[0].parts >= 16) == is_split
