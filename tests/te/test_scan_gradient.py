"""Gradients of recurrences, against finite differences."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
from tests.te.differences import check_gradient
from tests.te.recurrences import lstm, lstm_arrays
from tests.te.running import Array, results

from weft import te
from weft.driver.function import build_function
from weft.ir import Var, apply, cast, const, maximum, select
from weft.loop import NOTHING
from weft.support.dtypes import f64, i64
from weft.support.errors import GradientError
from weft.te import Tensor

T = Var("T")


def given(*shape: int, name: str = "X") -> Tensor:
    return te.placeholder(shape, f64, name)


def values(*shape: int, seed: int = 0) -> Array:
    return np.random.default_rng(seed).standard_normal(shape) * 0.7


def test_text_of_the_gradient_of_a_recurrence(golden: Callable[[str], None]) -> None:
    x, i, s = (te.placeholder((n, 2), f64, name) for n, name in ((T, "X"), (1, "I"), (T, "S")))
    (y,) = te.scan([i], [te.compute((T, 2), lambda t, j: s[t - 1, j] * x[t, j], "U")], [s])
    golden(str(te.to_program([x, i], te.gradient(y, [x, i]))))


@pytest.mark.sampled(2)
@pytest.mark.parametrize("steps", [2, 3, 6])
@pytest.mark.parametrize("state", [0, 1], ids=["h", "c"])
def test_lstm(state: int, steps: int) -> None:
    cell = lstm(T, 4, 3, f64)
    check_gradient(cell.outputs[state], cell.inputs, lstm_arrays(steps, 4, 3, f64), T=steps)


def test_lstm_compiled() -> None:
    cell, arrays = lstm(6, 4, 3, f64), lstm_arrays(6, 4, 3, f64)
    gradients = te.gradient(cell.outputs[0], cell.inputs)
    wanted = results(cell.inputs, gradients, *arrays)
    found = [np.empty_like(a) for a in arrays]
    build_function(te.to_program(cell.inputs, gradients))(*arrays, *found)
    for got, reference in zip(found, wanted, strict=True):
        np.testing.assert_allclose(got, reference, rtol=1e-9)


def test_both_states_of_an_lstm_after_each_other() -> None:
    """Two layers, and a loss of both states of the second."""
    first = lstm(5, 3, 2, f64)
    x, wx, wh, h0, c0 = first.inputs
    h = first.outputs[0]
    w, i, s = given(3, 3, name="W"), given(1, 3, name="I"), given(5, 3, name="S")
    k = te.reduce_axis(3, "k")
    product = te.compute((5, 3), lambda t, j: te.sum_(s[t - 1, k] * w[k, j], [k]), "product")
    (top,) = te.scan([i], [te.compute((5, 3), lambda t, j: apply("tanh", product[t, j] + h[t, j]), "new")], [s])
    y = te.compute((5, 3), lambda t, j: top[t, j] * first.outputs[1][t, j], "Y")
    inputs = [x, wx, wh, h0, c0, w, i]
    check_gradient(y, inputs, [*lstm_arrays(5, 3, 2, f64), values(3, 3, seed=1), values(1, 3, seed=2)])


@pytest.mark.parametrize("steps", [2, 3, 7])
def test_two_steps_back(steps: int) -> None:
    x, i, s = te.placeholder((T,), f64, "X"), given(2, name="I"), te.placeholder((T,), f64, "S")
    update = te.compute((T,), lambda t: s[t - 1] * s[t - 2] + x[t] * s[t - 2], "U")
    (y,) = te.scan([i], [update], [s])
    check_gradient(y, [x, i], [values(steps), values(2, seed=1)], T=steps)


def test_only_two_steps_back() -> None:
    x, i, s = given(6), given(2, name="I"), given(6, name="S")
    (y,) = te.scan([i], [te.compute((6,), lambda t: apply("sin", s[t - 2]) + x[t] * x[t - 1], "U")], [s])
    check_gradient(y, [x, i], [values(6), values(2, seed=1)])


def test_a_matrix_power() -> None:
    a, v, s = given(3, 3, name="A"), given(1, 3, name="V"), given(5, 3, name="S")
    k = te.reduce_axis(3, "k")
    (y,) = te.scan([v], [te.compute((5, 3), lambda t, i: te.sum_(a[i, k] * s[t - 1, k], [k]), "U")], [s])
    check_gradient(y, [a, v], [values(3, 3), values(1, 3, seed=1)])


def test_other_reductions_in_a_step() -> None:
    """A smooth and a hard maximum over the state, and a product."""
    x, i, s = given(5, 4), given(1, 4, name="I"), given(5, 4, name="S")
    k, q, p = (te.reduce_axis(4, n) for n in "kqp")
    top = te.compute((5,), lambda t: te.max_(s[t - 1, k], [k]), "top")
    total = te.compute((5,), lambda t: te.sum_(apply("exp", s[t - 1, q] - top[t]), [q]), "total")
    product = te.compute((5,), lambda t: te.prod(s[t - 1, p] + 1.0, [p]), "product")

    update = te.compute((5, 4), lambda t, j: apply("log", total[t]) * x[t, j] + top[t] - product[t] * 0.1, "U")
    (y,) = te.scan([i], [update], [s])
    check_gradient(y, [x, i], [values(5, 4), values(1, 4, seed=1)])


def test_a_state_that_is_never_looked_at() -> None:
    """Its adjoint is known from the start; the other state's comes from behind."""
    x, i, j = given(4, 2), given(1, 2, name="I"), given(1, 2, name="J")
    s, out = given(4, 2, name="S"), given(4, 2, name="O")
    new = te.compute((4, 2), lambda t, k: s[t - 1, k] * x[t, k], "new")
    seen = te.compute((4, 2), lambda t, k: new[t, k] * new[t, 1 - k] + s[t - 1, k], "seen")
    first, second = te.scan([i, j], [new, seen], [s, out])
    arrays = [values(4, 2), values(1, 2, seed=1), values(1, 2, seed=2)]
    check_gradient(second, [x, i, j], arrays)
    check_gradient(te.compute((4, 2), lambda t, k: first[t, k] * second[t, k]), [x, i, j], arrays)
    (last,) = te.gradient(first, [j])
    assert not results([x, i, j], [last], *arrays)[0].any()


def test_a_state_that_is_an_index() -> None:
    """No gradient flows through it, but it chooses what does."""
    x, i, s, n = given(5, 3), given(1, name="I"), given(5, name="S"), te.placeholder((5,), i64, "N")
    start = te.compute((1,), lambda t: const(1, i64), "start", dtype=i64)
    step = te.compute((5,), lambda t: (n[t - 1] * 2 + 1) % 3, "step", dtype=i64)
    update = te.compute((5,), lambda t: s[t - 1] * x[t, n[t - 1]] + cast(n[t - 1], f64), "U")
    (y, _) = te.scan([i, start], [update, step], [s, n])
    check_gradient(y, [x, i], [values(5, 3), values(1, seed=1)])


def test_two_updates_of_one_formula() -> None:
    i, j, a, b = given(1, name="I"), given(1, name="J"), given(5, name="A"), given(5, name="B")
    cos, sin = te.compute_many((5,), lambda t: (a[t - 1] * b[t - 1], a[t - 1] - b[t - 1] * b[t - 1]), "both")
    first, second = te.scan([i, j], [cos, sin], [a, b])
    y = te.compute((5,), lambda t: first[t] + second[t] * 2.0)
    check_gradient(y, [i, j], [values(1), values(1, seed=1)])


def test_what_is_read_at_other_times() -> None:
    """A causal convolution inside the step, and a padded look ahead."""
    x, w, i, s = given(6), given(2, name="W"), given(1, name="I"), given(6, name="S")
    k = te.reduce_axis(2, "k")
    seen = te.compute((6,), lambda t: te.sum_(x[t - k] * w[k] * s[t - 1], [k], where=t >= k), "seen")
    update = te.compute((6,), lambda t: seen[t] + select(t < 5, x[t + 1], 0.0) * s[t - 1], "U")
    (y,) = te.scan([i], [update], [s])
    check_gradient(y, [x, w, i], [values(6), values(2, seed=1), values(1, seed=2)])


def test_a_tensor_that_the_start_and_the_steps_read() -> None:
    x, s = given(5, 2), given(5, 2, name="S")
    i = te.compute((1, 2), lambda t, j: x[0, j] * x[4, j], "I")
    scaled = te.compute((5, 2), lambda t, j: x[t, j] * x[4 - t, j], "scaled")
    update = te.compute((5, 2), lambda t, j: maximum(s[t - 1, j], scaled[t, j]) * x[t, 0], "U")
    (y,) = te.scan([i], [update], [s])
    check_gradient(y, [x], [values(5, 2)])


def test_by_the_initial_steps_alone() -> None:
    x, i, s = given(4), given(1, name="I"), given(4, name="S")
    (y,) = te.scan([i], [te.compute((4,), lambda t: s[t - 1] * x[t], "U")], [s])
    check_gradient(te.compute((1,), lambda _: y[3]), [i], [values(1)], [(x, values(4, seed=1))])


def test_second_order() -> None:
    x, i, s = given(4), given(1, name="I"), given(4, name="S")
    (y,) = te.scan([i], [te.compute((4,), lambda t: s[t - 1] * s[t - 1] * 0.5 + x[t] * s[t - 1], "U")], [s])
    weights = te.compute((4,), lambda t: apply("sin", cast(t + 1, f64)), "weights")
    for first in te.gradient(y, [x, i], weights):
        check_gradient(first, [x, i], [values(4), values(1, seed=1)], tolerance=1e-5)


def test_an_operation_that_is_no_formula() -> None:
    x = given(3)
    (y,) = te.extern([(3,)], [x], lambda ins, outs: NOTHING, [f64], "opaque")
    with pytest.raises(GradientError) as caught:
        te.gradient(te.compute((3,), lambda i: y[i] * 2.0), [x])
    assert str(caught.value) == (
        "there is no gradient of opaque, which is not a formula\n  hint: compute it by formulas"
    )
