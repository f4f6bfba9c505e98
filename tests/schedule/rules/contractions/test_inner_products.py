"""Rows times rows, contiguous along the reduction, are computed in tiles of sums whose terms are lanes of vectors."""

from __future__ import annotations

import numpy as np
import pytest
from tests.schedule.compiling import HERE
from tests.schedule.running import same_results
from tests.support.jit import load
from tests.support.machines import SERVER

from weft import te
from weft.cost import InnerProblem, inner_tile_plans
from weft.loop import Program
from weft.lower import lower
from weft.schedule import schedule_program


def product(rows: int, columns: int, depth: int, batch: int = 1) -> Program:
    x, w = te.placeholder((batch, rows, depth), name="x"), te.placeholder((batch, columns, depth), name="w")
    b, k = te.placeholder((columns,), name="b"), te.reduce_axis(depth, "k")
    y = te.compute((batch, rows, columns), lambda n, i, j: te.sum_(x[n, i, k] * w[n, j, k], [k]), "y")
    return te.to_program([x, w, b], [te.compute(y.shape, lambda n, i, j: y[n, i, j] + b[j], "z")], "product")


@pytest.mark.sampled(2)
@pytest.mark.parametrize(
    ("batch", "rows", "columns", "depth"),
    [
        (1, 1, 64, 64),
        (1, 3, 9, 17),
        (1, 5, 1, 31),
        (1, 4, 24, 32),
        (2, 3, 17, 37),
        (1, 7, 13, 50),
        (3, 1, 5, 16),
        (1, 2, 1, 100),
    ],
)
def test_results(batch: int, rows: int, columns: int, depth: int) -> None:
    program = product(rows, columns, depth, batch)
    s = schedule_program(program, SERVER)
    same_results(program, s.program)
    made = np.random.default_rng(0)
    x, w, b = (
        made.integers(0, 5, shape).astype(np.float32)
        for shape in ((batch, rows, depth), (batch, columns, depth), (columns,))
    )
    z = np.empty((batch, rows, columns), np.float32)
    load(lower(s.program, HERE, verify=True), HERE)[1](x, w, b, z)
    np.testing.assert_array_equal(z, x @ w.transpose(0, 2, 1) + b)


def test_each_load_is_used_for_several_sums() -> None:
    """Four rows times six columns fill the registers of a machine with 32; their columns lie apart."""
    s = schedule_program(product(4, 3072, 768), SERVER)
    loops = s.loops(s.block("y_rf"))
    assert [s.extent(f) for f in loops] == [8, 64, 1, 48, 4, 6, 16]


def test_tiles_have_the_fewest_cycles_that_registers_hold() -> None:
    """A tile of one row has as many columns as hide the latency of an addition."""
    best = {
        rows: next(inner_tile_plans(InnerProblem(1, rows, 3072, 768, 16), SERVER)).decision for rows in (1, 2, 5, 16)
    }
    assert {rows: (tile.rows, tile.columns) for rows, tile in best.items()} == {
        1: (1, 8),
        2: (2, 8),
        5: (3, 8),
        16: (8, 3),
    }


def test_threads_share_pieces_of_the_columns() -> None:
    """A column of one piece is far from the next in its tile, and all of a piece is of one thread."""
    s = schedule_program(product(1, 4096, 650), SERVER)
    loops = s.loops(s.block("y_rf"))
    assert [s.extent(f) for f in loops if "j" in f.var.name] == [8, 64, 8]
    assert "parallel" in str(s.function)


def test_threads_share_rows_where_there_are_few_columns() -> None:
    s = schedule_program(product(4000, 8, 64), SERVER)
    assert s.loops(s.block("y_rf"))[0].var.name.startswith("n_i")
    assert "parallel(0, 500)" in str(s.function) or "parallel(0, 1000)" in str(s.function)


def test_pieces_have_whole_tiles_where_some_number_of_them_does() -> None:
    """2600 columns are 325 tiles of 8: five pieces of 65, rather than eight with a remainder each."""
    s = schedule_program(product(1, 2600, 640), SERVER)
    loops = s.loops(s.block("y_rf"))
    assert [s.extent(f) for f in loops if "j" in f.var.name] == [5, 65, 8]
