"""Convolutions on tensor cores: factors rounded to bf16 or tf32, patches computed where they are fetched, and sums of float32."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod
from typing import Any

import ml_dtypes
import numpy as np
import pytest
from onnx import ModelProto, TensorProto, helper, numpy_helper
from tests.runtime.devices.fake_driver import FakeDriver
from tests.schedule.programs import Array

import weft
from weft.cost import Candidate, FragmentTile, ImplicitProduct, filled_terms
from weft.driver.build import build
from weft.driver.options import CompileOptions
from weft.support.dtypes import DType, bf16, u32
from weft.targets.instructions import SWIZZLED_BYTES

CASES: dict[str, tuple[tuple[int, ...], tuple[int, ...], dict[str, Any]]] = {
    "3x3": ((2, 32, 8, 8), (64, 32, 3, 3), {"pads": [1] * 4}),
    "3x3 by groups of warps": ((2, 64, 8, 8), (64, 64, 3, 3), {"pads": [1] * 4}),
    "stride": ((4, 16, 16, 16), (64, 16, 3, 3), {"pads": [1] * 4, "strides": [2, 2]}),
    "one tap at a stride": ((4, 64, 16, 16), (64, 64, 1, 1), {"strides": [2, 2]}),
    "parts of the terms": ((1, 128, 7, 7), (64, 128, 3, 3), {"pads": [1] * 4}),
    "taps filled up": ((2, 3, 32, 32), (64, 3, 7, 7), {"pads": [3] * 4, "strides": [2, 2]}),
}


def _to_bf16(v: Array) -> Array:
    return v.astype(ml_dtypes.bfloat16).astype(np.float32)


def _to_tf32(v: Array) -> Array:
    given = v.view(np.uint32)
    bits: Array = (given + np.uint32(0xFFF) + (given >> 13 & 1)) & np.uint32(0xFFFFE000)
    return bits.view(np.float32)


ROUNDED = {"bf16": _to_bf16, "tf32": _to_tf32}
"""What each precision makes of float32."""


def convolution(
    shape: tuple[int, ...], weight: tuple[int, ...], attributes: dict[str, Any], *, exact: str | None = None
) -> ModelProto:
    """Returns relu(conv(x, w, b)), with factors that rounding to the precision *exact* does not change."""
    rng = np.random.default_rng(0)
    w, b = rng.standard_normal(weight, np.float32) * 0.1, rng.standard_normal(weight[0], np.float32)
    w = w if exact is None else ROUNDED[exact](w)
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
@pytest.mark.parametrize(("precision", "factors"), [("bf16", bf16), ("tf32", u32)], ids=["bf16", "tf32"])
def test_rounded_convolutions(driver: FakeDriver, name: str, precision: str, factors: DType) -> None:
    shape, weight, attributes = CASES[name]
    model = convolution(shape, weight, attributes)
    made = build(model, "cuda", CompileOptions(precision=precision), cache=None, choose=in_fragments)
    (kernel,) = made.kernels.values()
    terms = filled_terms(prod(weight[1:]), weight[1], factors)
    is_in_groups = terms % (SWIZZLED_BYTES // factors.bytes) == 0
    assert (f"wgmma_{precision}" if is_in_groups else f"warp.mma_{precision}") in kernel.flat
    assert "patches =" not in kernel.flat
    x = np.random.default_rng(1).standard_normal(shape, np.float32)
    found = weft.Model(made.package).run([x])[0]
    same = convolution(shape, weight, attributes, exact=precision)
    expected = weft.compile(same).run([ROUNDED[precision](x)])[0]
    np.testing.assert_allclose(found, expected, rtol=0, atol=3e-2 if precision == "bf16" else 1e-4)
    assert found.shape == expected.shape
