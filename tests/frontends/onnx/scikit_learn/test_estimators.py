"""Estimators of scikit-learn, converted by skl2onnx and compiled: labels are equal, numbers to the roundings of float32.

Not here is what skl2onnx itself makes no valid model of (gradient boosting by histograms), or one that means something else
(isotonic calibration), and what ONNX Runtime refuses as well (Gaussian processes that classify).
"""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
import pytest
from onnx import ModelProto
from skl2onnx import to_onnx
from skl2onnx.common.data_types import FloatTensorType, Int64TensorType, StringTensorType
from sklearn.pipeline import Pipeline
from tests.frontends.onnx.nodes import Array
from tests.frontends.onnx.scikit_learn.estimators import ALL, Case

import weft

ROWS = 60
TYPES = {"f": FloatTensorType, "i": Int64TensorType, "O": StringTensorType}
METHODS = ("predict", "predict_proba", "decision_function", "transform")
"""What the outputs of a converted model may be, in this order."""


def title(case: Case) -> str:
    last = case.estimator[-1] if isinstance(case.estimator, Pipeline) else case.estimator
    kinds = "" if case.y is None else f" {case.y.dtype.kind}{case.y.ndim}"
    return f"{'pipeline to ' if isinstance(case.estimator, Pipeline) else ''}{type(last).__name__}{kinds}"


def converted(case: Case) -> tuple[Any, ModelProto]:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        fitted = case.estimator.fit(case.x, case.y)
        kind = TYPES[case.x.dtype.kind]([None, case.x.shape[1]])
        options = {"zipmap": False} if hasattr(fitted, "predict_proba") and hasattr(fitted, "classes_") else None
        opsets = {"": 18, "ai.onnx.ml": 3}  # which all of its converters can write
        return fitted, to_onnx(fitted, initial_types=[("x", kind)], options=options, target_opset=opsets)


def wanted(fitted: Any, x: Array, count: int) -> list[Array]:
    """Returns what the estimator has for the first *count* of `METHODS` that it knows."""
    found = [getattr(fitted, name)(x) for name in METHODS if hasattr(fitted, name)]
    return [a.toarray() if hasattr(a, "toarray") else np.asarray(a) for a in found[:count]]


@pytest.mark.sampled(5)
@pytest.mark.parametrize("case", ALL, ids=title)
def test_estimator(case: Case) -> None:
    fitted, model = converted(case)
    rows = case.x[:ROWS]
    made = weft.compile(model).run([rows])
    expected = wanted(fitted, rows, len(made))
    assert expected
    for a, b in zip(made, expected, strict=False):
        check(np.asarray(a), b)


def check(made: Array, expected: Array) -> None:
    made = (
        made[:, -1] if made.ndim == 2 and expected.ndim == 1 and made.shape[1] == 2 else made
    )  # scores of both classes
    made = made.reshape(expected.shape)
    if expected.dtype.kind in "OUi":
        np.testing.assert_array_equal(made.astype(expected.dtype), expected)
    else:
        assert np.ptp(expected) > 0
        assert np.abs(made - expected).max() <= 2e-4 * np.abs(expected).max()
