"""One row times a matrix that no cache holds reads the matrix in order, some of its rows side by side."""

from __future__ import annotations

import numpy as np
import pytest
from tests.schedule.compiling import HERE
from tests.schedule.running import same_results
from tests.support.jit import load
from tests.support.machines import SERVER

from weft import te
from weft.cost.rules.contractions.gemv import ROWS
from weft.loop import Program
from weft.lower import lower
from weft.schedule import schedule_program

SMALL = SERVER.having(l2=64 << 10, l3=64 << 10)


def product(rows: int, depth: int, columns: int, batch: int = 1, bias: bool = False) -> Program:
    x, w = te.placeholder((batch, rows, depth), name="x"), te.placeholder((batch, depth, columns), name="w")
    b, k = te.placeholder((columns,), name="b"), te.reduce_axis(depth, "k")
    y = te.compute((batch, rows, columns), lambda n, i, j: te.sum_(x[n, i, k] * w[n, k, j], [k]), "y")
    z = te.compute((batch, rows, columns), lambda n, i, j: y[n, i, j] + b[j], "z")
    return te.to_program([x, w, b], [z], "product") if bias else te.to_program([x, w], [y], "product")


@pytest.mark.sampled(2)
@pytest.mark.parametrize("bias", [False, True])
@pytest.mark.parametrize(("batch", "depth", "columns"), [(1, 64, 1100), (3, 37, 1103), (1, 19, 9000)])
def test_rows_side_by_side(batch: int, depth: int, columns: int, bias: bool) -> None:
    program = product(1, depth, columns, batch, bias)
    s = schedule_program(program, SMALL)
    loops = s.loops(s.block("y"))
    assert s.extent(loops[-2]) == ROWS
    assert "k" in loops[-4].var.name, "rows outside, places in them inside"
    same_results(program, s.program)
    made = np.random.default_rng(0)
    x = made.integers(0, 5, (batch, 1, depth)).astype(np.float32)
    w = made.integers(0, 5, (batch, depth, columns)).astype(np.float32)
    b = made.integers(0, 5, columns).astype(np.float32)
    z = np.empty((batch, 1, columns), np.float32)
    load(lower(s.program, HERE, verify=True), HERE)[1](*([x, w, b, z] if bias else [x, w, z]))
    np.testing.assert_array_equal(z, x @ w + (b if bias else 0))


@pytest.mark.parametrize(
    "program",
    [
        product(2, 64, 1100),  # a second row uses what is read once more
        product(1, 64, 200),  # several rows are in one page
        product(1, 16, 1024),  # it all stays near
        product(1, 15, 9000),  # too few rows
    ],
)
def test_elsewhere_tiles_do(program: Program) -> None:
    s = schedule_program(program, SMALL)
    assert all(s.extent(f) != ROWS or "k" not in f.var.name for f in s.loops(s.block("y")))
