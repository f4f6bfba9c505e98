"""Damaged models: whatever is wrong with a node, the importer says so in an error of its own."""

from __future__ import annotations

import random

import numpy as np
import pytest
from onnx import ModelProto
from tests.frontends.onnx.mutations import GENTLE
from tests.frontends.onnx.test_onnx_cases import arrays, cases

from weft.frontends.onnx.importer import from_onnx
from weft.frontends.onnx.registry import TABLE
from weft.support.errors import WeftError


@pytest.mark.parametrize("seed", range(4))
def test_damaged_models_are_refused_or_imported(seed: int) -> None:
    rng = random.Random(seed)
    refused = 0
    for op in sorted(name for domain, name in TABLE if not domain and name in cases()):
        case = rng.choice(cases()[op])
        assert case.model is not None
        assert case.data_sets is not None
        model = ModelProto()
        model.CopyFrom(case.model)
        if not model.graph.input:
            continue
        rng.choice(GENTLE)(model, rng)
        given = dict(zip([i.name for i in model.graph.input], arrays(case.data_sets[0][0]), strict=False))
        fixed = {k: v for k, v in given.items() if isinstance(v, np.ndarray) and v.dtype.kind in "iub"}
        try:
            from_onnx(model, values=fixed)
        except WeftError:
            refused += 1
    assert refused > 20
