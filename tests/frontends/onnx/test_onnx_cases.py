"""ONNX's own test cases: every operator of the table on the inputs and outputs that come with the `onnx` package."""

from __future__ import annotations

import re
import warnings
from collections.abc import Sequence
from functools import cache
from typing import Any, Final

import numpy as np
import onnx.defs
import pytest
from onnx import TensorProto, numpy_helper
from onnx.backend.test.case.test_case import TestCase
from onnx.backend.test.loader import load_model_tests
from tests.frontends.onnx.operators.held_feeds import run_held

from weft.frontends.onnx.held import part_name
from weft.frontends.onnx.importer import from_onnx
from weft.frontends.onnx.registry import TABLE

NOT_SUPPORTED: Final = {
    "elements of other types": r"complex",
    "empty tensors that are read": r"empty_set|_zero_size|zero_dim|_empty$",
    "the numbers of NumPy's generator": r"training_dropout(?!_zero_ratio)|bernoulli",
    "Scan of operator set 8": r"test_scan_sum$",
}
"""Cases that are refused, or draw other numbers, by what their names say, and why."""

WITHOUT_CASES: Final = frozenset(
    {
        "Bernoulli",
        "Multinomial",
        "RandomNormal",
        "RandomNormalLike",
        "RandomUniform",
        "RandomUniformLike",
        "CategoryMapper",
        "ConcatFromSequence",
        "GlobalLpPool",
        "MaxRoiPool",
        "Optional",
        "SequenceAt",
        "SequenceConstruct",
        "SequenceEmpty",
        "SequenceErase",
        "SequenceLength",
        "SimplifiedLayerNormalization",
        "FeatureVectorizer",
        "Imputer",
        "LinearClassifier",
        "LinearRegressor",
        "Normalizer",
        "OneHotEncoder",
        "SVMClassifier",
        "SVMRegressor",
        "Scaler",
        "TreeEnsembleClassifier",
        "TreeEnsembleRegressor",
        "ZipMap",
    }
)
"""Operators of the table that ONNX has no cases for, none without strings or chance, or that ONNX Runtime adds to its domain."""

STANDARD: Final = [name for domain, name in TABLE if onnx.defs.has(name, domain) or not domain]
"""Operators of the table that ONNX defines, in any of its domains, and those that are in its own."""


@cache
def cases() -> dict[str, list[TestCase]]:
    """Returns the cases of each operator, leaving out those of functions written out."""
    found: dict[str, list[TestCase]] = {}
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        for case in load_model_tests(kind="node"):
            if case.model is not None and "_expanded" not in case.name:
                found.setdefault(case.model.graph.node[-1].op_type, []).append(case)
    return found


def is_refused(case: TestCase) -> bool:
    return any(re.search(pattern, case.name) for pattern in NOT_SUPPORTED.values())


def check(case: TestCase) -> None:
    assert case.model is not None
    assert case.data_sets is not None
    for inputs, outputs in case.data_sets:
        feeds = dict(zip([i.name for i in case.model.graph.input], arrays(inputs), strict=False))
        found = run_held(from_onnx(case.model), feeds, [o.name for o in case.model.graph.output])
        flat = [[a for value in values for _, a in tensors("", value)] for values in (found, arrays(outputs))]
        for a, b in zip(*flat, strict=True):
            b = b.astype(object) if b.dtype.kind in "UT" else b
            assert (a.dtype, a.shape) == (b.dtype, b.shape), case.name
            if a.dtype == object:
                assert a.tolist() == b.tolist(), case.name
                continue
            if a.dtype.isbuiltin == 2:  # bfloat16 and smaller types, which NumPy compares as raw bytes
                a, b = a.astype(np.float32), b.astype(np.float32)
            np.testing.assert_allclose(a, b, case.rtol, max(case.atol, 1e-6), err_msg=case.name)


def arrays(values: Sequence[Any]) -> list[Any]:
    return [array(v) for v in values]


def array(value: Any) -> Any:
    """Returns a tensor as an array, a sequence as a list of them, and None as it is."""
    if isinstance(value, list):
        return [array(v) for v in value]
    if value is None:
        return None
    return numpy_helper.to_array(value) if isinstance(value, TensorProto) else np.asarray(value)


def tensors(name: str, value: Any) -> list[tuple[str, Any]]:
    """Returns the tensors of a value, by their names."""
    if isinstance(value, list):
        return [(part_name(name, k), v) for k, v in enumerate(value)]
    return [] if value is None else [(name, value)]


@pytest.mark.sampled(20)
@pytest.mark.parametrize("op", sorted(name for name in STANDARD if name not in WITHOUT_CASES))
def test_operator(op: str) -> None:
    wanted = [case for case in cases()[op] if not is_refused(case)]
    assert wanted
    for case in wanted:
        check(case)


def test_operators_without_cases_have_none() -> None:
    assert not [case.name for op in WITHOUT_CASES for case in cases().get(op, []) if not is_refused(case)]


def test_functions_are_expanded() -> None:
    functions = [
        "Celu",
        "Shrink",
        "RotaryEmbedding",
        "HannWindow",
        "NegativeLogLikelihoodLoss",
        "SoftmaxCrossEntropyLoss",
        "Attention",
        "SwiGLU",
    ]
    for op in functions:
        assert ("", op) not in TABLE
        for case in cases()[op][:3]:
            check(case)
