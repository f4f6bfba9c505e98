"""Updates whose places are data are shared among threads by their columns, and computed as by one thread."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from tests.schedule.rules.test_parallel import THREADS

from weft.cost import SharedColumns, shared_column_plans
from weft.driver.build import build
from weft.driver.options import CompileOptions
from weft.graph import Graph
from weft.runtime import Model
from weft.schedule import schedule_program
from weft.support.dtypes import f32, i64
from weft.targets import cpu, parse_target
from weft.te import compute, placeholder, scan, scatter, sum_, to_program

Array = np.ndarray[Any, Any]
SHAPES = {"whole vectors": (9, 64), "rows of rows": (9, 4, 5), "few columns": (9, 10)}
PARTS: dict[str, Callable[[Array, tuple[Array, ...], Array], None]] = {
    "add": np.add.at,
    "mul": np.multiply.at,
    "max": np.maximum.at,
    "none": lambda y, t, u: y.__setitem__(t, u),
}


def updated(shape: tuple[int, ...], updates: int) -> str:
    """Returns the schedule of so many updates of rows."""
    x, t = placeholder(shape, f32, "x"), placeholder((updates,), i64, "t")
    u = placeholder((updates, *shape[1:]), f32, "u")
    y = scatter(x, u.shape, lambda *i: ((t[i[0]], *i[1:]), u[i]), sum_, "y")
    return str(schedule_program(to_program([x, t, u], [y]), THREADS).program)


@pytest.mark.parametrize("shape", SHAPES.values(), ids=SHAPES)
def test_threads_have_columns_of_their_own(shape: tuple[int, ...]) -> None:
    found = updated(shape, 5000)
    assert ("parallel(0, 2, task_inside=1):" in found) == (shape[-1] != 10)


def test_few_updates_are_not_shared() -> None:
    two = cpu("avx512").having(cores=2)
    assert min(shared_column_plans(64, 16, 1e3, two), key=lambda c: c.cycles).decision == SharedColumns(1)
    assert min(shared_column_plans(64, 16, 1e6, two), key=lambda c: c.cycles).decision == SharedColumns(2)
    pieces = [c.decision.pieces for c in shared_column_plans(96, 16, 1e6, two.having(cores=8))]
    assert pieces == [1, 2, 3, 6]


def test_recurrences_are_not_shared() -> None:
    """A step of one column may read another of the step before."""
    x, first, before = (
        placeholder(shape, f32, n) for n, shape in (("x", (500, 64)), ("s0", (1, 64)), ("s", (500, 64)))
    )
    then = compute((500, 64), lambda t, j: before[t - 1, 63 - j] + x[t, j], "then")
    made = scan([first], [then], [before])
    program = to_program([x, first], made)
    assert "task_inside" not in str(schedule_program(program, THREADS).program)


@pytest.mark.parametrize("reduction", PARTS)
@pytest.mark.parametrize("op", ["scatter_nd", "scatter_elements"])
def test_any_number_of_threads_computes_the_same(op: str, reduction: str) -> None:
    rng = np.random.default_rng(3)
    places = rng.integers(0, 9, (300, 1) if op == "scatter_nd" else (300, 64))
    x, u = (rng.standard_normal(s).astype(np.float32) for s in ((9, 64), (300, 64)))
    g = Graph()
    given = [g.input("x", x.shape, f32), g.input("t", places.shape, i64), g.input("u", u.shape, f32)]
    g.output(g.add(op, given, reduction=reduction), "y")
    made = build(g, parse_target("cpu").having(cores=2, fork_cycles=1, wake_cycles=1), CompileOptions(verify=True))
    assert any("task_inside" in k.scheduled for k in made.kernels.values())
    wanted = x.copy()
    for n in range(300):
        at: tuple[Array, ...] = (places[n, :1],) if op == "scatter_nd" else (places[n], np.arange(64))
        PARTS[reduction](wanted, at, u[n])
    for threads in (1, 2, 3):
        (y,) = Model(made.package, threads=threads).run([x, places, u])
        np.testing.assert_array_equal(y, wanted)
