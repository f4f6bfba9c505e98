"""From tensor expressions to loop programs."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
from tests.te.running import results

from weft import te
from weft.ir import Expr, Var, all_of, eq, select
from weft.support.dtypes import f32, i64
from weft.support.errors import TypeMismatch


def test_a_chain(golden: Callable[[str], None]) -> None:
    a, b = te.placeholder((4, 6), f32, "A"), te.placeholder((6, 3), f32, "B")
    k = te.reduce_axis(6, "k")
    c = te.compute((4, 3), lambda i, j: te.sum_(a[i, k] * b[k, j], [k]), "C")
    golden(str(te.to_program([a, b], [te.compute((4, 3), lambda i, j: c[i, j] + 1.0, "D")])))


def test_several_values_are_computed_before_the_first_is_stored(golden: Callable[[str], None]) -> None:
    a, k = te.placeholder((4, 6), f32, "A"), te.reduce_axis(6, "k")
    golden(str(te.to_program([a], te.compute_many((4,), lambda i: te.argmax((k, a[i, k]), [k]), "best"))))


def test_symbolic_sizes_are_parameters(golden: Callable[[str], None]) -> None:
    n, m = Var("n"), Var("m")
    a = te.placeholder((n, m + 1), f32, "A")
    b = te.compute((m, n), lambda i, j: a[j, i + 1], "B")
    golden(str(te.to_program([a], [b], "shift", sizes=[m])))


def test_names_are_made_unique() -> None:
    a = te.placeholder((4,), f32, "x")
    b = te.compute((4,), lambda i: a[i] + 1.0, "x")
    c = te.compute((4,), lambda i: b[i] + 1.0, "x")
    program = te.to_program([a], [c])
    assert [p.name for p in program.entry.params] == ["x", "x_1"]
    x = np.arange(4, dtype=np.float32)
    np.testing.assert_array_equal(results([a], [c], x)[0], x + 2)


def test_an_output_that_another_reads() -> None:
    a = te.placeholder((4,), f32, "A")
    b = te.compute((4,), lambda i: a[i] + 1.0, "B")
    c = te.compute((4,), lambda i: b[3 - i] * 2.0, "C")
    x = np.arange(4, dtype=np.float32)
    first, second = results([a], [c, b], x)
    np.testing.assert_array_equal(first, (x + 1)[::-1] * 2)
    np.testing.assert_array_equal(second, x + 1)


def test_padding_reads_nothing_outside() -> None:
    a = te.placeholder((3, 4), f32, "A")

    def padded(i: Expr, j: Expr) -> Expr:
        return select(all_of([i > 0, i < 4, j > 1, j < 6]), a[i - 1, j - 2], -1.0)

    x = np.arange(12, dtype=np.float32).reshape(3, 4)
    made = results([a], [te.compute((5, 7), padded, "P")], x)[0]
    np.testing.assert_array_equal(made, np.pad(x, ((1, 1), (2, 1)), constant_values=-1))


def test_a_gather() -> None:
    a, t = te.placeholder((5,), f32, "A"), te.placeholder((3,), i64, "T")
    x, w = np.arange(5, dtype=np.float32), np.array([4, 0, 2])
    np.testing.assert_array_equal(results([a, t], [te.compute((3,), lambda i: a[t[i]], "B")], x, w)[0], x[w])


def test_a_read_of_a_read() -> None:
    t = te.placeholder((4,), i64, "T")
    w = np.array([3, 0, 1, 2])
    np.testing.assert_array_equal(results([t], [te.compute((4,), lambda i: t[t[i]], "B")], w)[0], w[w])


def test_symbolic_sizes_by_value() -> None:
    n = Var("n")
    a = te.placeholder((n,), f32, "A")
    k = te.reduce_axis(n, "k")
    mean = te.compute((n,), lambda i: te.sum_(select(eq(k, i), 0.0, a[k]), [k]), "B")
    x = np.arange(6, dtype=np.float32)
    np.testing.assert_array_equal(results([a], [mean], x, n=6)[0], x.sum() - x)


def test_a_missing_input_is_named() -> None:
    a, b = te.placeholder((4,), f32, "A"), te.placeholder((4,), f32, "B")
    with pytest.raises(TypeMismatch, match="the outputs need B, which is not among the inputs") as caught:
        te.to_program([a], [te.compute((4,), lambda i: a[i] + b[i])])
    assert caught.value.hint == "add it to inputs"


def test_an_unused_input_is_a_parameter_all_the_same() -> None:
    a, b = te.placeholder((4,), f32, "A"), te.placeholder((4,), f32, "B")
    program = te.to_program([a, b], [te.compute((4,), lambda i: b[i], "C")])
    assert [p.name for p in program.entry.params] == ["A", "B", "C"]


def test_an_output_must_be_computed_and_once() -> None:
    a = te.placeholder((4,), f32, "A")
    b = te.compute((4,), lambda i: a[i] + 1.0, "B")
    with pytest.raises(TypeMismatch, match="the output A is an input"):
        te.to_program([a], [b, a])
    with pytest.raises(TypeMismatch, match="the output B is listed twice"):
        te.to_program([a], [b, b])


def test_an_axis_that_nothing_reduces_is_named() -> None:
    a, k = te.placeholder((4,), f32, "A"), te.reduce_axis(4, "k")
    with pytest.raises(TypeMismatch, match="the formula of B uses k, which is neither one of its indices nor a size"):
        te.to_program([a], [te.compute((4,), lambda i: a[i] + a[k], "B")])
    other = te.reduce_axis(4, "q")
    with pytest.raises(TypeMismatch, match="the formula of B uses q"):
        te.to_program([a], [te.compute((4,), lambda i: te.sum_(a[k], [k], where=other < i), "B")])


def test_a_size_may_be_part_of_a_formula() -> None:
    n = Var("n")
    a, k = te.placeholder((n,), f32, "A"), te.reduce_axis(n, "k")
    reverse = te.compute((n,), lambda i: a[n - 1 - i], "B")
    total = te.compute((1,), lambda i: te.sum_(reverse[k], [k]), "C")
    x = np.arange(6, dtype=np.float32)
    assert results([a], [total], x, n=6)[0][0] == 15
