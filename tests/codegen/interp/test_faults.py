"""What a program must not do is reported with the statement and the values; one test a diagnostic."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from weft.codegen.interp import ExecutionError, run
from weft.loop import parse_program
from weft.support.errors import InputError, LoweringError, RuntimeFailure


def failure(kind: type[Exception], text: str, *inputs: Any) -> str:
    """The message of the error that running *text* raises."""
    with pytest.raises(kind) as caught:
        run(parse_program(text), inputs if inputs else [np.zeros(4, np.float32)])
    return str(caught.value)


def test_index_beyond_the_end() -> None:
    assert failure(ExecutionError, "def main(X: f32[n]):\n    for i in range(0, n):\n        X[i] = X[i + 1]\n") == (
        "the index 4 of dimension 0 of X is outside of 0 .. 3\n  in\n    X[i] = X[i + 1]\n  where n = 4, i = 3"
    )


def test_negative_index() -> None:
    assert failure(ExecutionError, "def main(X: f32[4]):\n    for i in range(0, 4):\n        X[2 - i] = 0.0\n") == (
        "the index -1 of dimension 0 of X is outside of 0 .. 3\n  in\n    X[2 - i] = 0.0\n  where i = 3"
    )


def test_vector_index() -> None:
    assert failure(ExecutionError, "def main(X: f32[4]):\n    X[ramp(1, 1, 4)] = broadcast(0.0, 4)\n") == (
        "the index [1, 2, 3, 4] of dimension 0 of X is outside of 0 .. 3\n"
        "  in\n    X[ramp(1, 1, 4)] = broadcast(0.0, 4)"
    )


def test_view_that_reaches_outside() -> None:
    assert failure(ExecutionError, "def main(X: f32[4]):\n    v = view(X, 2, f32[3])\n") == (
        "v: a buffer of 3 at 2 reaches outside of memory of 4 elements\n  in\n    v = view(X, 2, f32[3])\n    pass"
    )


def test_axis_outside_of_its_extent() -> None:
    text = 'def main(X: f32[4]):\n    for i in range(0, 4):\n        with block("b", v=spatial(3, i)):\n            X[v] = 0.0\n'
    assert failure(ExecutionError, text) == (
        "the axis v is 3, outside of 0 .. 2\n  in\n"
        '    with block("b", v=spatial(3, i)):\n        reads()\n        writes(X[v])\n        X[v] = 0.0\n'
        "  where i = 3, v = 3"
    )


def test_division_by_zero() -> None:
    assert failure(ExecutionError, "def main(n: i64):\n    eval_(3 // n)\n", 0) == (
        "division by zero\n  in\n    eval_(3 // n)\n  where n = 0"
    )


def test_unknown_callee() -> None:
    assert failure(ExecutionError, "def main(X: f32[4]):\n    barrier()\n") == (
        "there is no function or intrinsic 'barrier' to call\n  in\n    barrier()"
    )


def test_failed_check() -> None:
    text = 'def main(n: i64):\n    check(n < 3, "{0} is not below {1}", n, 3)\n'
    assert failure(RuntimeFailure, text, 7) == "7 is not below 3"


def test_name_out_of_scope() -> None:
    program = parse_program("def main(X: f32[4]):\n    for i in range(0, 4):\n        X[i] = 0.0\n")
    stray = program.with_function(program.entry.with_body(program.entry.body.body))  # type: ignore[attr-defined]
    with pytest.raises(LoweringError) as caught:
        run(stray, [np.zeros(4, np.float32)])
    assert str(caught.value) == "the variable i is not in scope\n  hint: verify the program first"


MAIN = "def main(X: f32[n, 2], m: i64):\n    pass\n"


@pytest.mark.parametrize(
    ("inputs", "message"),
    [
        ([np.zeros((3, 2), np.float32)], "main takes 2 inputs, not 1"),
        ({"Y": 3}, "main has no parameter Y; it has X, m"),
        ([np.zeros((3, 2)), 1], "X is float32, but the array given is float64"),
        ([np.zeros((3, 3), np.float32), 1], "the shape of X is [3, 2], but that of the array given is [3, 3]"),
        ([3, 1], "main needs the value of n, which no input tells"),
        ({"X": np.zeros((3, 2), np.float32)}, "main needs the value of m, which no input tells"),
    ],
)
def test_inputs_that_do_not_fit(inputs: Any, message: str) -> None:
    with pytest.raises(InputError) as caught:
        run(parse_program(MAIN), inputs)
    assert str(caught.value) == message
