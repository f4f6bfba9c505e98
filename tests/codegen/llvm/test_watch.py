"""A number outside of its limits is told to the context, and the nearest inside is taken in its place."""

from __future__ import annotations

import numpy as np
import pytest
from tests.codegen.llvm.harness import TARGETS, call, elementwise, machine_for

from weft.codegen.llvm.ir_module import write_module
from weft.ir import Expr, apply
from weft.loop import Program
from weft.support.dtypes import DType, i32, i64, u8

COUNT = 48


def limited(x: Expr) -> Expr:
    """*x* from 3 to 90."""
    return apply("watched", x, 3, 90)


@pytest.mark.sampled(24)
@pytest.mark.parametrize("level", TARGETS)
@pytest.mark.parametrize("lanes", [1, 3, 4, 16])
@pytest.mark.parametrize("dtype", [i32, i64, u8], ids=str)
@pytest.mark.parametrize(
    "outside", [{}, {0: 2}, {47: 91}, {5: 0, 6: 120, 40: 91}], ids=["none", "less", "more", "some"]
)
def test_values(level: str, lanes: int, dtype: DType, outside: dict[int, int]) -> None:
    machine = machine_for([elementwise("f", [dtype], dtype, lanes, COUNT, limited)], TARGETS[level])
    x = np.linspace(3, 90, COUNT).astype(dtype.numpy)
    for at, value in outside.items():
        x[at] = value
    y = np.zeros_like(x)
    call(machine, "f", x, y)
    np.testing.assert_array_equal(y, x.clip(3, 90))
    assert machine.ctx.outside == (1 if outside else 0)


def test_what_is_done_then_is_behind_a_branch() -> None:
    text = write_module(Program((elementwise("f", [i64], i64, 4, COUNT, limited),)), TARGETS["sse4"]).text
    body, seldom = text.split("outside", 2)[0], text.split("outside", 2)[2]
    assert "smax" not in body.split("define")[1]
    assert "store i32 1" in seldom
    assert "smax" in seldom
