"""Updates of elements whose places are data: in their order, by every reducer, as loops, as machine code, and backwards."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.te.differences import check_gradient
from tests.te.running import Array, results

from weft import te
from weft.driver.function import build_function
from weft.ir import Expr
from weft.loop import LoopKind, parse_program, statements, verify
from weft.loop.alpha_equivalence import check_same
from weft.loop.nodes import Block, For
from weft.schedule import Schedule, schedule_program
from weft.support.dtypes import DType, f32, f64, i64
from weft.support.errors import GradientError, ScheduleError, TypeMismatch
from weft.targets import parse_target
from weft.te import OpClass, Tensor, classify

COMBINED: dict[str, tuple[te.Reducer | None, Callable[[Array, Array], Array]]] = {
    "put": (None, lambda a, b: b),
    "add": (te.sum_, np.add),
    "mul": (te.prod, np.multiply),
    "min": (te.min_, np.minimum),
    "max": (te.max_, np.maximum),
}


def rows(n: int, m: int, k: int, reducer: te.Reducer | None, dtype: DType = f32) -> tuple[list[Tensor], Tensor]:
    """Updates whole rows."""
    x, t = te.placeholder((n, m), dtype, "x"), te.placeholder((k,), i64, "t")
    u = te.placeholder((k, m), dtype, "u")
    return [x, t, u], te.scatter(x, (k, m), lambda p, j: ((t[p], j), u[p, j]), reducer, "y")


def expected(x: Array, t: Array, u: Array, how: str) -> Array:
    y = x.copy()
    for p, i in enumerate(t):
        y[i] = COMBINED[how][1](y[i], u[p])
    return y


def example(n: int, m: int, k: int, seed: int = 0) -> tuple[Array, Array, Array]:
    rng = np.random.default_rng(seed)
    x, u = rng.standard_normal((n, m)).astype(np.float32), rng.standard_normal((k, m)).astype(np.float32)
    return x, rng.integers(0, n, k), u


def test_text(golden: Callable[[str], None]) -> None:
    inputs, y = rows(5, 4, 3, te.sum_)
    program = te.to_program(inputs, [y])
    verify(program)
    check_same(parse_program(str(program)), program)
    golden(str(program))


@pytest.mark.parametrize("how", COMBINED)
@given(st.integers(1, 6), st.integers(1, 20), st.integers(1, 9), st.integers(0, 99))
@settings(max_examples=6, deadline=None)
def test_the_order_of_the_updates_is_kept(how: str, n: int, m: int, k: int, seed: int) -> None:
    inputs, y = rows(n, m, k, COMBINED[how][0])
    x, t, u = example(n, m, k, seed)
    np.testing.assert_array_equal(results(inputs, [y], x, t, u)[0], expected(x, t, u, how))


@pytest.mark.parametrize("how", COMBINED)
def test_compiled(how: str) -> None:
    inputs, y = rows(50, 35, 120, COMBINED[how][0])
    x, t, u = example(50, 35, 120)
    found = np.empty_like(x)
    build_function(schedule_program(te.to_program(inputs, [y]), parse_target("cpu")).program)(x, t, u, found)
    np.testing.assert_array_equal(found, expected(x, t, u, how))


def test_an_index_of_both_is_spatial_and_the_others_are_ordered() -> None:
    inputs, y = rows(5, 32, 3, None)
    s = Schedule(te.to_program(inputs, [y]))
    p, j = s.loops(s.block("y"))
    with pytest.raises(ScheduleError, match="combines values along it: its axis vp is of kind ordered"):
        s.parallel(p)
    s.vectorize(j)
    verify(s.program)


def test_threads_share_rows_that_are_told_apart() -> None:
    n, k = 64, 3000
    x, t, u = te.placeholder((n, 9), f32, "x"), te.placeholder((n, k), i64, "t"), te.placeholder((n, k), f32, "u")
    y = te.scatter(x, (n, k), lambda i, p: ((i, t[i, p]), u[i, p]), te.sum_, "y")
    s = schedule_program(te.to_program([x, t, u], [y]), parse_target("cpu"))
    outer = [f for f in statements(s.program.entry.body) if isinstance(f, For) and f.kind is LoopKind.PARALLEL]
    names = {b.name for f in outer for b in statements(f) if isinstance(b, Block)}
    assert "y" in names
    a, at = np.zeros((n, 9), np.float32), np.random.default_rng(0).integers(0, 9, (n, k))
    found = np.empty_like(a)
    build_function(s.program)(a, at, np.ones((n, k), np.float32), found)
    np.testing.assert_array_equal(found, [np.bincount(row, minlength=9) for row in at])


def test_a_condition_leaves_updates_out() -> None:
    x, t = te.placeholder((4,), f32, "x"), te.placeholder((6,), i64, "t")
    y = te.scatter(x, (6,), lambda p: ((t[p],), 7.0, p < 3), None, "y")
    made = results([x, t], [y], np.zeros(4, np.float32), np.array([0, 2, 2, 3, 3, 1]))
    np.testing.assert_array_equal(made[0], [7, 0, 7, 0])


def test_the_work_is_that_of_the_updates_and_of_the_tensor() -> None:
    """A table of many rows, few of which are updated, and its gradient."""
    table, t = te.placeholder((1000, 8), f32, "table"), te.placeholder((5,), i64, "t")
    y = te.compute((5, 8), lambda i, j: table[t[i], j], "y")
    (d,) = te.gradient(y, [table])
    text = str(te.to_program([table, t], [d]))
    assert text.count("range(0, 1000)") == 2  # zeros, and their copy
    found = results([table, t], [d], np.zeros((1000, 8), np.float32), np.array([3, 9, 3, 0, 3]))[0]
    np.testing.assert_array_equal(found[:, 0], np.bincount([3, 9, 3, 0, 3], minlength=1000))


@pytest.mark.parametrize("how", ["add", "put"])
def test_gradient(how: str) -> None:
    x, t, u = te.placeholder((4, 3), f64, "x"), te.placeholder((5,), i64, "t"), te.placeholder((5, 3), f64, "u")
    y = te.scatter(x, (5, 3), lambda p, j: ((t[p], j), u[p, j] * u[p, j]), COMBINED[how][0], "y")
    z = te.compute((4, 3), lambda i, j: y[i, j] * y[i, j], "z")
    rng = np.random.default_rng(0)
    check_gradient(
        z, [x, u], [rng.standard_normal((4, 3)), rng.standard_normal((5, 3))], [(t, np.array([2, 0, 2, 3, 0]))]
    )


def test_what_a_reduction_reads_at_data_is_summed_before_it_is_added() -> None:
    table, t = te.placeholder((5, 3), f64, "table"), te.placeholder((4,), i64, "t")
    b = te.placeholder((3, 6), f64, "b")
    k = te.reduce_axis(3, "k")
    y = te.compute((4, 6), lambda i, j: te.sum_(table[t[i], k] * b[k, j], [k]), "y")
    rng = np.random.default_rng(0)
    check_gradient(
        y, [table, b], [rng.standard_normal((5, 3)), rng.standard_normal((3, 6))], [(t, np.array([2, 0, 2, 4]))]
    )


def test_it_is_opaque() -> None:
    assert classify(rows(5, 4, 3, None)[1].op) is OpClass.OPAQUE


def wrong_place(p: Expr) -> tuple[Sequence[Expr], float]:
    return (p, p), 1.0


def test_refusals() -> None:
    x = te.placeholder((4,), f32, "x")
    with pytest.raises(TypeMismatch, match="y combines single values, but argmax takes several"):
        te.scatter(x, (3,), lambda p: ((p,), 1.0), te.argmax, "y")
    with pytest.raises(TypeMismatch, match="y updates a tensor of 1 dimensions at 2 indices"):
        te.to_program([x], [te.scatter(x, (3,), wrong_place, None, "y")])
    t = te.placeholder((3,), i64, "t")
    with pytest.raises(TypeMismatch, match="y is f32, but its updates are i64"):
        te.to_program([x, t], [te.scatter(x, (3,), lambda p: ((p,), t[p]), None, "y")])
    with pytest.raises(TypeMismatch, match="the formula of y uses k, which is neither one of its indices nor a size"):
        te.to_program([x], [te.scatter(x, (3,), lambda p: ((te.reduce_axis(2, "k"),), 1.0), None, "y")])
    with pytest.raises(GradientError, match="there is no gradient of y, which combines elements by max"):
        te.gradient(te.scatter(x, (3,), lambda p: ((p,), 1.0), te.max_, "y"), [x])
