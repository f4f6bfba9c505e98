"""Sorting, selection and prefixes by algorithms: against NumPy, for every type, length and order that may matter."""

from __future__ import annotations

from collections.abc import Callable
from statistics import median
from time import thread_time

import numpy as np
import pytest
from tests.ops.test_order import compiled, descending
from tests.support.devices import needs_opencl

import weft
from weft.driver.checking.reference import run_operator
from weft.graph import Array, Graph
from weft.ir import Var
from weft.ops import OPERATORS
from weft.ops.algorithms.radix_sort import LONG
from weft.ops.algorithms.sorting import FEW, SHORT
from weft.support.dtypes import f32, from_numpy
from weft.support.errors import TypeMismatch
from weft.te import placeholder

TYPES = [np.float32, np.float64, np.float16, np.int64, np.uint64, np.int32, np.int8, np.uint8, np.uint16]
ORDERS = ["random", "ascending", "descending", "equal"]


def arranged(order: str, dtype: type, *shape: int) -> Array:
    """Returns numbers with many equal ones, and NaN among floats."""
    rng = np.random.default_rng(0)
    x: Array = rng.integers(0, 100, shape).astype(dtype)
    if np.dtype(dtype).kind == "f":
        x = x - np.asarray(50, dtype)
        x[x == 7] = np.nan
    if np.dtype(dtype).kind == "i":
        x = x - np.asarray(50, dtype)
    if order == "equal":
        return np.zeros_like(x)
    return x if order == "random" else np.sort(x, -1)[..., :: 1 if order == "ascending" else -1].copy()


def first(x: Array, k: int) -> Array:
    return np.stack([descending(row.astype(np.float64))[:k] for row in x])


@pytest.mark.parametrize("dtype", TYPES)
@pytest.mark.parametrize("n", [SHORT, SHORT + 1, LONG])
def test_argsort(dtype: type, n: int) -> None:
    x = arranged("random", dtype, 2, n)
    np.testing.assert_array_equal(compiled("argsort", x), np.argsort(x, -1, kind="stable"))
    np.testing.assert_array_equal(compiled("argsort", x, descending=True), first(x, n))


@pytest.mark.parametrize("order", ORDERS)
@pytest.mark.parametrize(
    ("n", "k"),
    [(200, 1), (200, 3), (200, 9), (200, 200 // FEW), (200, 200 // FEW + 1), (200, 200), (1001, 5), (1001, 15)],
)
def test_top_k(order: str, n: int, k: int) -> None:
    """By a heap, by one of the best chunks' elements alone, and by sorting all."""
    x = arranged(order, np.float32, 3, n)
    np.testing.assert_array_equal(compiled("top_k", x, k=k), np.take_along_axis(x, first(x, k), -1))


@pytest.mark.parametrize("dtype", TYPES)
def test_the_interpreter_sorts_alike(dtype: type) -> None:
    x = arranged("random", dtype, 1, SHORT + 9)
    (order,) = run_operator("argsort", [x])
    np.testing.assert_array_equal(order, np.argsort(x, -1, kind="stable"))
    values, indices = run_operator("top_k", [x], k=7)
    np.testing.assert_array_equal(indices, first(x, 7))
    np.testing.assert_array_equal(values, np.take_along_axis(x, indices, -1))


def test_slices_along_an_axis_in_the_middle() -> None:
    x = arranged("random", np.float32, 2, 130, 3)
    np.testing.assert_array_equal(compiled("argsort", x, axis=1), np.argsort(x, 1, kind="stable"))
    x[np.isnan(x)] = 0
    order = np.argsort(-x, 1, kind="stable")[:, :4]
    np.testing.assert_array_equal(compiled("top_k", x, k=4, axis=1), np.take_along_axis(x, order, 1))


@pytest.mark.parametrize("n", [3, 5, 700])
def test_of_any_size(n: int) -> None:
    g = Graph()
    x = g.input("x", (2, Var("n")), f32)
    for k, v in enumerate([*g.add_many("top_k", [x], k=5), g.add("argsort", [x], descending=True)]):
        g.output(v, f"y{k}")
    given = arranged("random", np.float32, 2, n)
    values, indices, order = weft.Model(weft.build(g).package)(given)
    np.testing.assert_array_equal(indices, first(given, 5))
    np.testing.assert_array_equal(order, first(given, n))
    np.testing.assert_array_equal(values, np.take_along_axis(given, first(given, 5), -1))


def test_more_elements_than_there_are() -> None:
    with pytest.raises(TypeMismatch, match="top_k: 9 elements of 8"):
        OPERATORS["top_k"]([placeholder((2, 8), f32)], {"k": 9})


@pytest.mark.parametrize("dtype", [*TYPES, np.bool_])
@pytest.mark.parametrize("shape", [(1, 3), (3000, 3), (200, 70), (5, 0)])
def test_rows_are_ordered(dtype: type, shape: tuple[int, int]) -> None:
    x: Array = (np.random.default_rng(0).integers(0, 5, shape) - (2 if np.dtype(dtype).kind in "if" else 0)).astype(
        dtype
    )
    order = np.lexsort(x.T[::-1]) if x.size else np.arange(len(x))
    differs = np.any(x[order][1:] != x[order][:-1], axis=1)
    g = Graph()
    for n, v in enumerate(g.add_many("order_rows", [g.input("x", shape, from_numpy(x.dtype))])):
        g.output(v, f"y{n}")
    made = weft.Model(weft.build(g).package)(x)
    np.testing.assert_array_equal(made[0], order)
    np.testing.assert_array_equal(made[1], [True, *differs])


@pytest.mark.parametrize("dtype", [np.float32, np.float64, np.float16])
def test_rows_with_nan_are_no_others(dtype: type) -> None:
    """NaN is the largest, as in a sort of numbers, and equals nothing; zeros are equal, whatever their sign."""
    x: Array = np.array([[np.nan, 1], [0.0, 2], [3, np.nan], [np.nan, 0], [-0.0, 2], [3, 5], [3, np.nan]], dtype)
    order, differs = run_operator("order_rows", [x])
    np.testing.assert_array_equal(order, [1, 4, 5, 2, 6, 3, 0])
    np.testing.assert_array_equal(differs, [True, False, True, True, True, True, True])


@pytest.mark.timed
def test_the_time_to_order_rows_is_in_proportion_to_their_number() -> None:
    """For 16 times the rows, one by one, it would be 256 times as long."""

    def taken(rows: int) -> float:
        x = np.random.default_rng(0).standard_normal((rows, 3)).astype(np.float32)
        g = Graph()
        for n, v in enumerate(g.add_many("order_rows", [g.input("x", x.shape, f32)])):
            g.output(v, f"y{n}")
        model = weft.Model(weft.build(g).package, threads=1)
        times = []
        for _ in range(5):
            begin = thread_time()
            model(x)
            times.append(thread_time() - begin)
        return median(times)

    assert taken(1 << 14) < 64 * taken(1 << 10)


@pytest.mark.parametrize("op", ["cumsum", "cumprod"])
@pytest.mark.parametrize("shape", [(7,), (8,), (3, 21), (5, 40, 2), (4, 9, 30)])
@pytest.mark.parametrize(("exclusive", "reverse"), [(False, False), (True, False), (False, True), (True, True)])
def test_prefixes(op: str, shape: tuple[int, ...], exclusive: bool, reverse: bool) -> None:
    x = np.random.default_rng(0).integers(-2, 3, shape)
    axis = min(1, len(shape) - 1)
    turned = np.flip(x, axis) if reverse else x
    whole = (np.cumsum if op == "cumsum" else np.cumprod)(turned, axis)
    if exclusive:
        neutral = np.full_like(whole.take([0], axis), 0 if op == "cumsum" else 1)
        whole = np.concatenate([neutral, whole.take(range(shape[axis] - 1), axis)], axis)
    (made,) = run_operator(op, [x], axis=axis, exclusive=exclusive, reverse=reverse)
    np.testing.assert_array_equal(made, np.flip(whole, axis) if reverse else whole)


@pytest.mark.parametrize("shape", [(3, 21), (4, 9, 30)])
def test_prefixes_after_others(shape: tuple[int, ...]) -> None:
    x = np.random.default_rng(0).integers(-2, 3, shape)
    before = np.random.default_rng(1).integers(-2, 3, (shape[0], 1, *shape[2:]))
    (made,) = run_operator("cumsum", [x, before], axis=1)
    np.testing.assert_array_equal(made, np.cumsum(x, 1) + before)


def test_prefixes_of_16_bits_are_rounded_once() -> None:
    x = np.full((4096,), 0.25, np.float16)
    np.testing.assert_array_equal(compiled("cumsum", x), (np.arange(1, 4097) / 4).astype(np.float16))


@pytest.mark.timed
def test_a_million_are_sorted_in_less_than_three_times_numpys_time() -> None:
    x = np.random.default_rng(0).standard_normal(10**6).astype(np.float32)
    g = Graph()
    g.output(g.add("argsort", [g.input("x", x.shape, f32)]), "y")
    model = weft.Model(weft.build(g).package, threads=1)

    def taken(call: Callable[[Array], object]) -> float:
        begin = thread_time()
        call(x)
        return thread_time() - begin

    ratios = [taken(model) / taken(np.argsort) for _ in range(5)]
    assert median(ratios) < 3


@needs_opencl
def test_the_first_of_an_open_size_on_a_device() -> None:
    """A thread's own memory has a known size: that of all elements that are asked for, whether a call has as many or not."""
    g = Graph()
    values, places = g.add_many("top_k", [g.input("x", (g.dim("n"), 3), f32)], k=4, axis=0)
    g.output(values, "values")
    g.output(places, "places")
    made = weft.compile(g, target="opencl -device=any")
    for n in (2, 9):
        x = np.random.default_rng(n).standard_normal((n, 3)).astype(np.float32)
        order = np.argsort(-x, 0, kind="stable")[:4]
        found = made(x)
        np.testing.assert_array_equal(found[1], order)
        np.testing.assert_array_equal(found[0], np.take_along_axis(x, order, 0))
