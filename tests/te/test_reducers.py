"""Reductions against NumPy's."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
from tests.te.running import Array, results

from weft import te
from weft.ir import cast
from weft.support.dtypes import DType, bool_, f32, f64, i8, i32, i64, u8
from weft.support.errors import TypeMismatch

VALUES = np.array([[3, -1, 2, 3, 0], [-4, -4, -7, -5, -9], [1, 1, 1, 1, 1]])


def reduce_rows(reducer: te.Reducer, x: Array, dtype: DType) -> Array:
    a, k = te.placeholder(x.shape, dtype, "A"), te.reduce_axis(x.shape[1], "k")
    return results([a], [te.compute(x.shape[:1], lambda i: reducer(a[i, k], [k]), "B")], x)[0]


@pytest.mark.parametrize("dtype", [f32, f64, i8, i32, i64, u8], ids=str)
@pytest.mark.parametrize(
    ("reducer", "numpy"),
    [(te.sum_, np.sum), (te.prod, np.prod), (te.max_, np.max), (te.min_, np.min)],
    ids=["sum", "prod", "max", "min"],
)
def test_of_rows(reducer: te.Reducer, numpy: Callable[..., Array], dtype: DType) -> None:
    x = np.abs(VALUES % 4).astype(dtype.numpy) if dtype is u8 else (VALUES // 3).astype(dtype.numpy)
    np.testing.assert_array_equal(reduce_rows(reducer, x, dtype), numpy(x, axis=1).astype(dtype.numpy))


@pytest.mark.parametrize(("reducer", "numpy"), [(te.any_, np.any), (te.all_, np.all)], ids=["any", "all"])
def test_of_truth_values(reducer: te.Reducer, numpy: Callable[..., Array]) -> None:
    x = np.array([[True, False], [True, True], [False, False]])
    np.testing.assert_array_equal(reduce_rows(reducer, x, bool_), numpy(x, axis=1))


@pytest.mark.parametrize("dtype", [f32, i32], ids=str)
@pytest.mark.parametrize(
    ("reducer", "at", "best"),
    [(te.argmax, np.argmax, np.max), (te.argmin, np.argmin, np.min)],
    ids=["argmax", "argmin"],
)
def test_where_the_best_value_is(
    reducer: te.Reducer, at: Callable[..., Array], best: Callable[..., Array], dtype: DType
) -> None:
    """Of equal values the first counts."""
    x = VALUES.astype(dtype.numpy)
    a, k = te.placeholder(x.shape, dtype, "A"), te.reduce_axis(x.shape[1], "k")
    found = te.compute_many(x.shape[:1], lambda i: reducer((k, a[i, k]), [k]), "B")
    where, value = results([a], found, x)
    np.testing.assert_array_equal(where, at(x, axis=1))
    np.testing.assert_array_equal(value, best(x, axis=1))


def test_of_nothing_but_infinities() -> None:
    x = np.array([[-np.inf, -np.inf], [np.inf, -np.inf]], np.float32)
    a, k = te.placeholder(x.shape, f32, "A"), te.reduce_axis(2, "k")
    where, _ = results([a], te.compute_many((2,), lambda i: te.argmax((k, a[i, k]), [k]), "B"), x)
    np.testing.assert_array_equal(where, [0, 0])


def test_where_a_condition_holds() -> None:
    a, k = te.placeholder((4, 4), f32, "A"), te.reduce_axis(4, "k")
    x = np.arange(16, dtype=np.float32).reshape(4, 4)
    lower = te.compute((4,), lambda i: te.sum_(a[i, k], [k], where=k <= i), "B")
    np.testing.assert_array_equal(results([a], [lower], x)[0], np.tril(x).sum(1))


def test_over_several_axes_of_symbolic_extent() -> None:
    a = te.placeholder((3, 4, 2), f32, "A")
    x = np.arange(24, dtype=np.float32).reshape(3, 4, 2)
    p, q = te.reduce_axis(a.shape[0], "p"), te.reduce_axis(a.shape[2], "q")
    summed = te.compute((4,), lambda i: te.sum_(a[p, i, q], [p, q]), "B")
    np.testing.assert_array_equal(results([a], [summed], x)[0], x.sum((0, 2)))


def test_to_a_scalar() -> None:
    a, k = te.placeholder((5,), f32, "A"), te.reduce_axis(5, "k")
    x = np.arange(5, dtype=np.float32)
    assert results([a], [te.compute((), lambda: te.sum_(a[k], [k]), "B")], x)[0] == 10


def test_a_reducer_of_ones_own() -> None:
    """Complex products, as pairs."""
    times = te.reducer(
        lambda a, b: (a[0] * b[0] - a[1] * b[1], a[0] * b[1] + a[1] * b[0]),
        lambda t: (te.prod.identity(t[:1])[0], te.sum_.identity(t[1:])[0]),
        "times",
    )
    re, im = te.placeholder((2, 3), f32, "re"), te.placeholder((2, 3), f32, "im")
    k = te.reduce_axis(3, "k")
    out = te.compute_many((2,), lambda i: times((re[i, k], im[i, k]), [k]), "out")
    x, y = np.arange(6, dtype=np.float32).reshape(2, 3), np.ones((2, 3), np.float32)
    wanted = (x + 1j * y).prod(1)
    real, imaginary = results([re, im], out, x, y)
    np.testing.assert_array_equal(real, wanted.real)
    np.testing.assert_array_equal(imaginary, wanted.imag)


def test_a_wider_sum() -> None:
    a, k = te.placeholder((300,), u8, "A"), te.reduce_axis(300, "k")
    x = np.full(300, 200, np.uint8)
    total = te.compute((1,), lambda i: te.sum_(cast(a[k], i32), [k]), "B")
    assert results([a], [total], x)[0][0] == 60000


def test_refuses_axes_that_are_none() -> None:
    a = te.placeholder((4,), f32, "A")
    with pytest.raises(TypeMismatch, match=r"sum needs at least one reduce_axis\(\)"):
        te.compute((4,), lambda i: te.sum_(a[i], []))
    with pytest.raises(TypeMismatch, match=r"max needs at least one reduce_axis\(\)"):
        te.compute((4,), lambda i: te.max_(a[i], [i]))


@pytest.mark.parametrize("dtype", [f32, i8, u8, bool_], ids=str)
def test_lowest_and_highest(dtype: DType) -> None:
    low, high = te.lowest(dtype), te.highest(dtype)
    assert (low.dtype, high.dtype) == (dtype, dtype)
    values = {"f32": (-np.inf, np.inf), "i8": (-128, 127), "u8": (0, 255), "bool": (False, True)}[str(dtype)]
    assert (low.value, high.value) == values  # type: ignore[attr-defined]
