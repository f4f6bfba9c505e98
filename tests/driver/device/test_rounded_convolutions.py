"""Convolutions on tensor cores: factors rounded to bf16, patches computed where they are fetched, and sums of float32."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod
from typing import Any

import ml_dtypes
import numpy as np
import pytest
from onnx import ModelProto, TensorProto, helper, numpy_helper
from tests.runtime.devices.fake_driver import FakeDriver

import weft
from weft.cost import Candidate, FragmentTile, ImplicitProduct, filled_terms
from weft.driver.build import build
from weft.driver.options import CompileOptions

CASES: dict[str, tuple[tuple[int, ...], tuple[int, ...], dict[str, Any]]] = {
    "3x3": ((2, 32, 8, 8), (64, 32, 3, 3), {"pads": [1] * 4}),
    "3x3 by groups of warps": ((2, 64, 8, 8), (64, 64, 3, 3), {"pads": [1] * 4}),
    "stride": ((4, 16, 16, 16), (64, 16, 3, 3), {"pads": [1] * 4, "strides": [2, 2]}),
    "one tap at a stride": ((4, 64, 16, 16), (64, 64, 1, 1), {"strides": [2, 2]}),
    "parts of the terms": ((1, 128, 7, 7), (64, 128, 3, 3), {"pads": [1] * 4}),
    "taps filled up": ((2, 3, 32, 32), (64, 3, 7, 7), {"pads": [3] * 4, "strides": [2, 2]}),
}


def convolution(
    shape: tuple[int, ...], weight: tuple[int, ...], attributes: dict[str, Any], *, exact: bool
) -> ModelProto:
    """Returns relu(conv(x, w, b)) with factors of few bits if *exact*, which rounding does not change."""
    rng = np.random.default_rng(0)
    w, b = rng.standard_normal(weight, np.float32) * 0.1, rng.standard_normal(weight[0], np.float32)
    w = w.astype(ml_dtypes.bfloat16).astype(np.float32) if exact else w
    nodes = [helper.make_node("Conv", ["x", "w", "b"], ["c"], **attributes), helper.make_node("Relu", ["c"], ["y"])]
    x, y = (helper.make_tensor_value_info(n, TensorProto.FLOAT, s) for n, s in (("x", shape), ("y", None)))
    weights = [numpy_helper.from_array(v, n) for v, n in ((w, "w"), (b, "b"))]
    graph = helper.make_graph(nodes, "convolution", [x], [y], weights)
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=9)


def in_fragments(candidates: Sequence[Candidate[Any]]) -> Candidate[Any]:
    """Takes rounded factors and fragments, which are not estimated to be faster for images as small as these."""
    rounded = [c for c in candidates if isinstance(c.decision, ImplicitProduct) and c.decision.rounded]
    tiles = [c for c in candidates if isinstance(c.decision, FragmentTile) and c.decision.warps]
    return (rounded + tiles + list(candidates))[0]


@pytest.mark.sampled(2)
@pytest.mark.parametrize("name", CASES)
def test_rounded_convolutions(driver: FakeDriver, name: str) -> None:
    shape, weight, attributes = CASES[name]
    model = convolution(shape, weight, attributes, exact=False)
    made = build(model, "cuda", CompileOptions(precision="bf16"), cache=None, choose=in_fragments)
    (kernel,) = made.kernels.values()
    terms = filled_terms(prod(weight[1:]), weight[1], rounded=True)
    assert ("wgmma_bf16" if terms % 64 == 0 else "cuda.mma_bf16") in kernel.flat
    assert "patches =" not in kernel.flat
    x = np.random.default_rng(1).standard_normal(shape, np.float32)
    rounded = x.astype(ml_dtypes.bfloat16).astype(np.float32)
    found = weft.Model(made.package).run([x])[0]
    expected = weft.compile(convolution(shape, weight, attributes, exact=True)).run([rounded])[0]
    np.testing.assert_allclose(found, expected, rtol=0, atol=3e-2)
    assert found.shape == expected.shape
