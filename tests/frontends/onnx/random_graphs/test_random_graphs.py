"""Random models of many operators: no further from double precision than ONNX Runtime is, but for the rounding of a sum."""

from __future__ import annotations

import numpy as np
import pytest
from tests.frontends.onnx.nodes import by_runtime
from tests.frontends.onnx.random_graphs.random_model import Array, in_double, random_model

import weft

TIMES_RUNTIMES = 4
"""How often ONNX Runtime's own error Weft's may be: both add in float32, in other orders."""

ROUNDING = 1e-6
"""The error that any result may have: eight units of the last place."""


def error(made: Array, exact: Array) -> float:
    """Returns the greatest error relative to the greatest element, or to one: the logarithm of a sum of one is all rounding."""
    assert made.shape == exact.shape
    assert made.dtype == np.float32
    return float(np.max(np.abs(made - exact), initial=0.0) / np.max(np.abs(exact), initial=1.0))


def check(seed: int) -> None:
    model, feed = random_model(seed)
    made = weft.compile(model)(**feed)
    results = made if isinstance(made, tuple) else (made,)
    wanted, others = in_double(model, feed), by_runtime(model, feed, optimized=False)
    for k, (y, exact, other) in enumerate(zip(results, wanted, others, strict=True)):
        limit = TIMES_RUNTIMES * error(other, exact) + ROUNDING
        assert error(np.asarray(y), exact) <= limit, f"output {k} of seed {seed}"


@pytest.mark.sampled(5)
@pytest.mark.parametrize("seed", range(12))
def test_a_random_model_is_as_exact_as_in_onnx_runtime(seed: int) -> None:
    check(seed)


@pytest.mark.slow
@pytest.mark.parametrize("first", range(12, 300, 24))
def test_many_random_models_are_as_exact_as_in_onnx_runtime(first: int) -> None:
    for seed in range(first, first + 24):
        check(seed)
