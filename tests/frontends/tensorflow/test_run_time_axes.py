"""Axes that are inputs of a model of TensorFlow's: one graph for all of their values."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest
from tests.frontends.tensorflow.written import graph, node

from weft.driver.checking.reference import run_graph
from weft.frontends.dispatch import to_graph

X = np.random.default_rng(0).standard_normal((2, 3, 4)).astype(np.float32)
ONE = [(0,), (1,), (-1,)]


def run(op: str, axes: Sequence[Sequence[int]], *, is_scalar: bool, **attributes: Any) -> list[Any]:
    """Returns the results of one operator for each of *axes*, by one graph."""
    shape = () if is_scalar else (len(axes[0]),)
    model = graph(
        node("x", "Placeholder", dtype="type:float", shape=X.shape),
        node("axes", "Placeholder", dtype="type:int32", shape=shape),
        node("y", op, "x", "axes", **attributes),
    )
    made = to_graph(model)
    return [run_graph(made, {"x": X, "axes": np.array(a, np.int32).reshape(shape)})[0] for a in axes]


@pytest.mark.parametrize("keeps", [False, True])
def test_reductions(keeps: bool) -> None:
    axes = [(0, 1), (2, 0), (-1, 1)]
    for a, y in zip(axes, run("Mean", axes, is_scalar=False, keep_dims=keeps), strict=True):
        np.testing.assert_allclose(y, X.mean(a, keepdims=keeps), rtol=1e-5)


def test_running_sums_and_new_dimensions() -> None:
    for (a,), y in zip(ONE, run("Cumsum", ONE, is_scalar=True), strict=True):
        np.testing.assert_allclose(y, np.cumsum(X, a), rtol=1e-5)
    for (a,), y in zip(ONE, run("ExpandDims", ONE, is_scalar=True), strict=True):
        np.testing.assert_array_equal(y, np.expand_dims(X, a))
