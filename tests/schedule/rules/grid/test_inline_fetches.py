"""Grids compute padding and patches where they are read: each operator is one kernel, right and without races."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest
from tests.graph.oracle import evaluate_tensors
from tests.lower.threaded import check_threads
from tests.schedule.programs import Case, case

from weft.loop import Alloc, statements
from weft.ops import OPERATORS
from weft.schedule import schedule_program
from weft.support.dtypes import f32
from weft.targets.grid_machines import OPENCL
from weft.te import Tensor, placeholder

CASES: dict[str, tuple[str, Sequence[tuple[int, ...]], dict[str, Any]]] = {
    "channels alone": ("conv2d", [(1, 6, 9, 9), (6, 1, 3, 3)], {"group": 6, "pads": (1, 1, 1, 1)}),
    "groups": ("conv2d", [(1, 8, 9, 9), (16, 4, 3, 3)], {"group": 2, "pads": (1, 1, 1, 1)}),
    "pool": ("max_pool2d", [(1, 6, 9, 9)], {"kernel": (3, 3), "strides": (2, 2), "pads": (1, 1, 1, 1)}),
    "product": ("conv2d_implicit", [(2, 16, 8, 8), (144, 32), (32,)], {"kernel": (3, 3), "pads": (1, 1, 1, 1)}),
    "product of odd sizes": ("conv2d_implicit", [(1, 3, 9, 7), (63, 20)], {"kernel": (7, 3), "pads": (3, 1, 3, 1)}),
    "product of whole steps": ("conv2d_implicit", [(1, 3, 9, 9), (32, 16)], {"kernel": (3, 3), "pads": (1, 1, 1, 1)}),
    "product of images beside each other": (
        "conv2d_implicit",
        [(5, 16, 5, 5), (144, 40), (40,)],
        {"kernel": (3, 3), "pads": (1, 1, 1, 1), "merged": True},
    ),
    "product of images at a stride": (
        "conv2d_implicit",
        [(4, 16, 8, 8), (16, 24)],
        {"kernel": (1, 1), "strides": (2, 2), "merged": True},
    ),
    "product at a stride": ("conv2d_implicit", [(1, 16, 13, 13), (16, 24)], {"kernel": (1, 1), "strides": (2, 2)}),
}


def of_operator(op: str, shapes: Sequence[tuple[int, ...]], attributes: dict[str, Any]) -> Case:
    """The program of an operator, and what it computes."""
    given: list[Tensor | None] = [placeholder(s, f32, f"in{k}") for k, s in enumerate(shapes)]
    outputs = OPERATORS[op](given, attributes)
    inputs = [t for t in given if t is not None]
    return case(
        inputs, outputs, lambda *v: evaluate_tensors(outputs, dict(zip([t.op for t in inputs], v, strict=True)), {})
    )


@pytest.mark.parametrize("name", CASES)
def test_there_is_one_kernel(name: str) -> None:
    of = of_operator(*CASES[name])
    scheduled = schedule_program(of.program, OPENCL).program
    kept = [s for f in scheduled.functions for s in statements(f.body) if isinstance(s, Alloc)]
    assert all(s.buffer.scope != "global" for s in kept)
    counted = check_threads(of, scheduled, OPENCL)
    assert counted.ways <= 4
