"""Sorting and searching with NaN among the numbers: NumPy's order, each index just once; NaN goes through maxima and minima."""

from __future__ import annotations

from math import prod
from time import perf_counter
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import weft
from weft.driver.checking.reference import run_operator
from weft.graph import Array, Graph
from weft.ir import Const
from weft.ops import OPERATORS
from weft.schedule import schedule_program
from weft.schedule.cursors.tree import block_path, loops_on
from weft.support.dtypes import f32, from_numpy
from weft.targets import cpu
from weft.te import placeholder, to_program

NUMBERS = st.sampled_from(
    [np.nan, -np.nan, np.inf, -np.inf, 0.0, -0.0, 1.0, 1.5, -1.0, -1.5, 1e-45, -1e-45, 3e38, -3e38]
)


def descending(x: Array) -> Array:
    """Returns the stable order from the largest down, NaN first."""
    keys = np.where(np.isnan(x), np.inf, 0), np.where(np.isnan(x), 0, x)
    return np.lexsort((np.arange(len(x)), -keys[1], -keys[0]))


@given(st.lists(NUMBERS, min_size=1, max_size=24), st.sampled_from([np.float32, np.float64, np.float16]))
@settings(max_examples=40, deadline=None)
def test_argsort_is_numpys(numbers: list[float], dtype: type) -> None:
    with np.errstate(over="ignore"):
        x: Array = np.array(numbers).astype(dtype)
    (up,) = run_operator("argsort", [x])
    np.testing.assert_array_equal(up, np.argsort(x, kind="stable"))
    (down,) = run_operator("argsort", [x], descending=True)
    np.testing.assert_array_equal(down, descending(x.astype(np.float64)))


@given(st.lists(NUMBERS, min_size=1, max_size=12))
@settings(max_examples=40, deadline=None)
def test_the_best_is_numpys(numbers: list[float]) -> None:
    with np.errstate(over="ignore"):
        x = np.array(numbers, np.float32)
    for op, reference in (("argmax", np.argmax), ("argmin", np.argmin)):
        (made,) = run_operator(op, [x], keepdims=False)
        assert made == reference(x)
        (made,) = run_operator(op, [x], keepdims=False, last=True)
        assert made == len(x) - 1 - reference(x[::-1])
    (made,) = run_operator("hardmax", [x])
    np.testing.assert_array_equal(made, np.arange(len(x)) == np.argmax(x))


def compiled(op: str, *arrays: Array, **attributes: Any) -> Array:
    g = Graph()
    inputs = [g.input(f"x{n}", a.shape, from_numpy(a.dtype)) for n, a in enumerate(arrays)]
    for n, v in enumerate(g.add_many(op, inputs, **attributes)):
        g.output(v, f"y{n}")
    made = weft.Model(weft.build(g).package)(*arrays)
    return np.asarray(made[0] if isinstance(made, tuple) else made)


X = np.random.default_rng(0).standard_normal((3, 77)).astype(np.float32)
X[1, [5, 40]] = np.nan
X[2, 3] = np.inf


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_compiled_code_has_the_same_order(dtype: type) -> None:
    x: Array = X.astype(dtype)
    np.testing.assert_array_equal(compiled("argsort", x), np.argsort(x, axis=-1, kind="stable"))
    for op, reference in (("argmax", np.argmax), ("argmin", np.argmin)):
        np.testing.assert_array_equal(compiled(op, x, axis=1, keepdims=False), reference(x, axis=1))


@pytest.mark.parametrize(("op", "reference"), [("reduce_max", np.max), ("reduce_min", np.min)])
@pytest.mark.parametrize("axis", [0, 1])
def test_nan_goes_through_reductions(op: str, reference: object, axis: int) -> None:
    assert callable(reference)
    np.testing.assert_array_equal(compiled(op, X, axes=(axis,), keepdims=False), reference(X, axis=axis))


def test_nan_goes_through_what_bounds_elements() -> None:
    np.testing.assert_array_equal(compiled("relu", X), np.maximum(X, 0))
    np.testing.assert_array_equal(compiled("maximum", X, -X), np.maximum(X, -X))
    np.testing.assert_array_equal(compiled("minimum", X, np.zeros_like(X)), np.minimum(X, 0))
    low, high = np.array(-0.5, np.float32), np.array(0.5, np.float32)
    np.testing.assert_array_equal(compiled("clip", X, low, high), np.clip(X, low, high))


def test_nan_goes_through_windows() -> None:
    x = X[:, :72].reshape(1, 3, 8, 9)
    windows = np.lib.stride_tricks.sliding_window_view(x, (2, 3), axis=(2, 3))
    pooled = {"kernel": (2, 3), "strides": (1, 1), "pads": (0, 0, 0, 0)}
    np.testing.assert_array_equal(compiled("max_pool2d", x, **pooled), windows.max((-2, -1)))
    where = compiled("max_pool2d_indices", x, **pooled)
    np.testing.assert_array_equal(x.reshape(-1)[where], windows.max((-2, -1)))


@pytest.mark.parametrize("shape", [(1, 100), (100, 1), (1, 100, 3), (7, 50)])
def test_sorting_compares_each_pair_a_few_times(shape: tuple[int, ...]) -> None:
    """Whatever sizes are alike by chance: each vector's ranks are counted once."""
    axis = shape.index(100) if 100 in shape else 1
    x = placeholder(shape, f32, "x")
    s = schedule_program(to_program([x], OPERATORS["argsort"]([x], {"axis": axis})), cpu())
    work = 0
    for ref in s.blocks():
        work += prod(int(f.extent.value) for f in loops_on(block_path(s.function, ref)) if isinstance(f.extent, Const))
    assert work <= 4 * prod(shape) * shape[axis] + 400 * prod(shape)


@pytest.mark.slow
@pytest.mark.timed
def test_thousands_are_sorted_in_no_time() -> None:
    x = np.random.default_rng(0).standard_normal((1, 8400)).astype(np.float32)
    begin = perf_counter()
    made = compiled("argsort", x, descending=True)
    assert perf_counter() - begin < 20, (
        "with compiling: a minute and more where ranks are counted anew for each element"
    )
    np.testing.assert_array_equal(made, np.argsort(-x, axis=-1, kind="stable"))
