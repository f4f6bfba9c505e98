"""Recurrences: against NumPy, by the interpreter and compiled; and what a scan refuses."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
from tests.te.recurrences import Array, lstm, lstm_arrays, lstm_in_numpy
from tests.te.running import results

from weft import te
from weft.driver.function import build_function
from weft.ir import Var, maximum
from weft.loop import parse_program, verify
from weft.loop.alpha_equivalence import check_same
from weft.support.dtypes import f32, f64, i64
from weft.support.errors import TypeMismatch
from weft.te import OpClass, Tensor, classify

T, N = Var("T"), Var("n")


def running_sum() -> tuple[Tensor, Tensor]:
    x, s = te.placeholder((T, N), f32, "X"), te.placeholder((T, N), f32, "s")
    first = te.compute((1, N), lambda t, i: x[0, i], "first")
    (total,) = te.scan([first], [te.compute((T, N), lambda t, i: s[t - 1, i] + x[t, i], "more")], [s])
    return x, total


def test_text_of_a_running_sum(golden: Callable[[str], None]) -> None:
    x, total = running_sum()
    golden(str(te.to_program([x], [total])))


def test_text_of_an_lstm(golden: Callable[[str], None]) -> None:
    cell = lstm(T, 8, 5)
    program = te.to_program(cell.inputs, cell.outputs, "lstm")
    verify(program)
    check_same(parse_program(str(program)), program)
    golden(str(program))


@pytest.mark.parametrize("steps", [1, 2, 6])
def test_running_sum(steps: int) -> None:
    x, total = running_sum()
    values = np.arange(3.0 * steps, dtype=np.float32).reshape(steps, 3)
    np.testing.assert_array_equal(results([x], [total], values, T=steps, n=3)[0], values.cumsum(0))


@pytest.mark.parametrize("compiled", [False, True], ids=["interpreted", "compiled"])
def test_lstm(compiled: bool) -> None:
    cell, arrays = lstm(T, 8, 5), lstm_arrays(7, 8, 5)
    wanted = lstm_in_numpy(*arrays)
    if compiled:
        found = [np.empty((7, 8), np.float32) for _ in range(2)]
        build_function(te.to_program(cell.inputs, cell.outputs))(*arrays, *found, 7)
    else:
        found = results(cell.inputs, cell.outputs, *arrays, T=7)
    for a, b in zip(found, wanted, strict=True):
        np.testing.assert_allclose(a, b, atol=1e-6)


def test_two_steps_back() -> None:
    f = te.placeholder((9,), i64, "fib")
    init = te.compute((2,), lambda t: t, "init")
    (fib,) = te.scan([init], [te.compute((9,), lambda t: f[t - 1] + f[t - 2], "next")], [f])
    np.testing.assert_array_equal(results([], [fib])[0], [0, 1, 1, 2, 3, 5, 8, 13, 21])


def powers(n: int) -> tuple[Tensor, Tensor, Tensor]:
    """v, A v, A A v ...: the update is a reduction."""
    a, v = te.placeholder((n, n), f64, "A"), te.placeholder((1, n), f64, "v")
    s, k = te.placeholder((5, n), f64, "s"), te.reduce_axis(n, "k")
    update = te.compute((5, n), lambda t, i: te.sum_(a[i, k] * s[t - 1, k], [k]), "product")
    (out,) = te.scan([v], [update], [s])
    return a, v, out


def powers_in_numpy(a: Array, v: Array) -> Array:
    return np.array([np.linalg.matrix_power(a, t) @ v[0] for t in range(5)])


def test_text_of_an_update_that_is_a_reduction(golden: Callable[[str], None]) -> None:
    a, v, out = powers(4)
    golden(str(te.to_program([a, v], [out])))


def test_an_update_that_is_a_reduction() -> None:
    a, v, out = powers(4)
    x = np.random.default_rng(0).standard_normal((4, 4))
    y = np.random.default_rng(1).standard_normal((1, 4))
    np.testing.assert_allclose(results([a, v], [out], x, y)[0], powers_in_numpy(x, y))
    found = np.empty((5, 4))
    build_function(te.to_program([a, v], [out]))(x, y, found)
    np.testing.assert_allclose(found, powers_in_numpy(x, y))


def test_the_best_path_by_a_tuple_reduction() -> None:
    """Viterbi's algorithm: the best score of each state of a chain, and where it comes from."""
    steps, n = 6, 4
    emit, move = te.placeholder((steps, n), f64, "emit"), te.placeholder((n, n), f64, "move")
    zero = te.compute((1, n), lambda t, j: te.lowest(i64) * 0, "zero", dtype=i64)
    start = te.compute((1, n), lambda t, j: emit[0, j], "start")
    score, back = te.placeholder((steps, n), f64, "score"), te.placeholder((steps, n), i64, "back")
    k = te.reduce_axis(n, "k")
    came, best = te.compute_many((steps, n), lambda t, j: te.argmax((k, score[t - 1, k] + move[k, j]), [k]), "best")
    gained = te.compute((steps, n), lambda t, j: best[t, j] + emit[t, j], "gained")
    scores, froms = te.scan([start, zero], [gained, came], [score, back])

    made = np.random.default_rng(0)
    e, m = made.integers(-9, 9, (steps, n)).astype(float), made.integers(-9, 9, (n, n)).astype(float)
    wanted, whence = [e[0]], [np.zeros(n, np.int64)]
    for row in e[1:]:
        ways = wanted[-1][:, None] + m
        wanted.append(ways.max(0) + row)
        whence.append(ways.argmax(0))
    found = results([emit, move], [scores, froms], e, m)
    np.testing.assert_array_equal(found[0], wanted)
    np.testing.assert_array_equal(found[1], whence)


def test_a_scan_of_a_scan_and_what_comes_after() -> None:
    x, total = running_sum()
    s = te.placeholder((T, N), f32, "m")
    first = te.compute((1, N), lambda t, i: total[0, i])
    (peak,) = te.scan([first], [te.compute((T, N), lambda t, i: maximum(s[t - 1, i], total[t, i]))], [s])
    last = te.compute((N,), lambda i: peak[T - 1, i] + total[T - 1, i], "last")
    values = np.random.default_rng(0).integers(-9, 9, (6, 3)).astype(np.float32)
    sums = values.cumsum(0)
    np.testing.assert_array_equal(results([x], [last], values, T=6, n=3)[0], sums.max(0) + sums[-1])


def test_a_formula_of_two_updates_at_once() -> None:
    """Rotates a point: both states come from one formula, which reads both."""
    a, b = te.placeholder((5,), f64, "a"), te.placeholder((5,), f64, "b")
    one, zero = te.compute((1,), lambda t: 1.0, dtype=f32), te.compute((1,), lambda t: 0.0, dtype=f32)
    cos, sin = te.compute_many((5,), lambda t: (0.6 * a[t - 1] - 0.8 * b[t - 1], 0.8 * a[t - 1] + 0.6 * b[t - 1]))
    with pytest.raises(TypeMismatch, match="the state a is f64, starts as f32 and becomes f64"):
        te.scan([one, zero], [cos, sin], [a, b])
    start = te.placeholder((1,), f64, "start")
    found = results([start], te.scan([start, start], [cos, sin], [a, b]), np.array([1.0]))
    np.testing.assert_allclose(found[0] + 1j * found[1], (1 + 1j) * (0.6 + 0.8j) ** np.arange(5))


def test_a_scan_is_opaque() -> None:
    assert classify(running_sum()[1].op) is OpClass.OPAQUE


def test_what_does_not_depend_on_a_state_is_outside() -> None:
    op = lstm(T, 8, 5).outputs[0].op
    assert isinstance(op, te.Scan)
    assert [o.name for o in op.step] == ["from_h", "new_c", "new_h"]
    assert [t.name for t in op.inputs] == ["h0", "c0", "Wh", "from_x"]


X, S = te.placeholder((9, 4), f32, "X"), te.placeholder((9, 4), f32, "S")
INIT = te.placeholder((1, 4), f32, "I")


def refusal(update: Tensor, init: Tensor = INIT, state: Tensor = S) -> str:
    with pytest.raises(TypeMismatch) as caught:
        te.scan([init], [update], [state])
    return str(caught.value)


def test_refuses_steps_that_are_not_known() -> None:
    wrong = "y reads the state S at a step that may not be known\n  hint: look 1 step back"
    for back in (0, 2, -1):
        assert refusal(te.compute((9, 4), lambda t, i, b=back: S[t - b, i])) == wrong
    assert refusal(te.compute((9, 4), lambda t, i: S[i, i])) == wrong
    two = te.placeholder((2, 4), f32, "I")
    assert refusal(te.compute((9, 4), lambda t, i: S[t - 3, i]), two).endswith("hint: look 1 to 2 steps back")


def test_refuses_other_steps_of_what_is_no_state() -> None:
    twice = te.compute((9, 4), lambda t, i: S[t - 1, i] * 2.0, "twice")
    assert refusal(te.compute((9, 4), lambda t, i: twice[t - 1, i])) == (
        "y reads twice of another step\n  hint: make it a state, and read that"
    )


def test_refuses_formulas_without_time() -> None:
    last = te.compute((4,), lambda i: S[7, i], "last")
    assert refusal(te.compute((9, 4), lambda t, i: last[i])) == (
        "last depends on a state, so its first dimension must be time"
    )


def test_refuses_parts_that_do_not_fit() -> None:
    good = te.compute((9, 4), lambda t, i: S[t - 1, i])
    assert (
        refusal(te.compute((9, 5), lambda t, i: S[t - 1, 0]))
        == "the update of S has another shape than its placeholder"
    )
    assert refusal(X) == "the update of S is not a compute()"
    assert refusal(good, te.placeholder((1, 5), f32)) == "the initial steps of S have another shape than the others"
    constant = "all states of a scan start with the same constant number of steps, one or more"
    assert refusal(good, te.placeholder((0, 4), f32)) == constant
    assert refusal(good, te.placeholder((N, 4), f32)) == constant
    assert refusal(good, state=good) == "the state y is not a placeholder with time as its first dimension"
    with pytest.raises(TypeMismatch, match="an initial value, an update and a placeholder for each state"):
        te.scan([INIT], [], [S])
    with pytest.raises(TypeMismatch, match="two states of a scan have the same placeholder"):
        te.scan([INIT, INIT], [good, good], [S, S])
    other = te.placeholder((8, 4), f32, "other")
    shorter = te.compute((8, 4), lambda t, i: other[t - 1, i])
    with pytest.raises(TypeMismatch, match="other has another number of steps than S"):
        te.scan([INIT, INIT], [good, shorter], [S, other])


def test_refuses_an_operation_of_a_step_that_is_no_formula() -> None:
    inner = te.placeholder((9, 4), f32, "inner")
    seed = te.compute((1, 4), lambda t, i: S[0, i], "seed")
    (nested,) = te.scan([seed], [te.compute((9, 4), lambda t, i: inner[t - 1, i])], [inner])
    message = refusal(te.compute((9, 4), lambda t, i: nested[t, i]))
    assert message == "inner depends on a state of the scan, but is not a compute()"


def test_a_state_read_outside_its_scan_is_named() -> None:
    (out,) = te.scan([INIT], [te.compute((9, 4), lambda t, i: S[t - 1, i])], [S])
    wrong = te.compute((9, 4), lambda t, i: out[t, i] + S[t, i])
    with pytest.raises(TypeMismatch) as caught:
        te.to_program([INIT], [wrong])
    assert str(caught.value) == (
        "the outputs need S, which is not among the inputs\n  hint: read the result of the scan, not its placeholder"
    )


def test_an_index_of_no_formula_in_a_step_is_named() -> None:
    k = te.reduce_axis(4, "k")
    (out,) = te.scan([INIT], [te.compute((9, 4), lambda t, i: S[t - 1, k])], [S])
    with pytest.raises(TypeMismatch, match="the formula of y uses k, which is neither one of its indices nor a size"):
        te.to_program([INIT], [out])
