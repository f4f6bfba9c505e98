"""Constants are computed while compiling by the code that would compute them at run time."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest

from weft.driver import evaluate as evaluate_module
from weft.driver.checking.reference import run_operator
from weft.driver.evaluate import NativeEvaluator
from weft.driver.kernel import make_kernel
from weft.graph import Array
from weft.ops import OPERATORS
from weft.targets import can_run, cpu, host

RNG = np.random.default_rng(0)
X = RNG.standard_normal((3, 5)).astype(np.float32)
CASES: list[tuple[str, list[Array | None], dict[str, Any]]] = [
    ("add", [X, X[:1]], {}),
    ("sqrt", [np.abs(X)], {}),
    ("transpose", [X], {"perm": (1, 0)}),
    ("matmul", [X, X.T.copy()], {}),
    ("conv2d", [RNG.standard_normal((1, 2, 5, 5)).astype(np.float32), np.ones((3, 2, 3, 3), np.float32), None], {}),
    ("add", [np.arange(4), np.arange(4)], {}),
]


def evaluate(evaluator: NativeEvaluator, op: str, inputs: Sequence[Array | None], **attributes: Any) -> list[Array]:
    return evaluator.evaluate(OPERATORS[op], inputs, attributes)


@pytest.mark.parametrize(("op", "inputs", "attributes"), CASES)
@pytest.mark.parametrize("level", [None, "sse4"])
def test_results_are_the_references(
    op: str, inputs: list[Array | None], attributes: dict[str, Any], level: str | None
) -> None:
    target = cpu(level) if level else host()
    if not can_run(target):
        pytest.skip(f"this processor lacks {level}")
    made = evaluate(NativeEvaluator(target), op, inputs, **attributes)
    for ours, wanted in zip(made, run_operator(op, inputs, **attributes), strict=True):
        assert ours.dtype == wanted.dtype
        np.testing.assert_allclose(ours, wanted, rtol=1e-5, atol=1e-6)


def test_equal_calls_share_their_code(monkeypatch: pytest.MonkeyPatch) -> None:
    made: list[str] = []

    def spy(request: Any, *args: Any, **named: Any) -> Any:
        made.append(request.key(host()))
        return make_kernel(request, *args, **named)

    monkeypatch.setattr(evaluate_module, "make_kernel", spy)
    evaluator = NativeEvaluator(host())
    for x in (X, X + 1, X.T.copy(), X.astype(np.float64)):
        evaluate(evaluator, "neg", [x])
    assert len(made) == len(set(made)) == 3


def test_what_is_not_contiguous_is_read_in_order() -> None:
    (made,) = evaluate(NativeEvaluator(host()), "neg", [X.T])
    assert np.array_equal(made, -X.T)


def test_empty_arrays() -> None:
    (made,) = evaluate(NativeEvaluator(host()), "neg", [np.zeros((0, 3), np.float32)])
    assert made.shape == (0, 3)
