"""Attention for CUDA is one kernel, of 16 bits in fragments; it runs on a driver that pretends to be a GPU."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper
from tests.runtime.devices.fake_driver import FakeDriver
from tests.schedule.programs import Array

import weft
from weft.cost import Candidate, RoundedFactors, cheapest
from weft.driver.build import build
from weft.driver.options import CompileOptions

MANY = 8192
"""Rows of queries for which a device is full of warps."""


def attention(queries: int, keys: int, kind: int, is_causal: int = 0) -> onnx.ModelProto:
    """Returns the operator `Attention` of a head of size 64: `q`, `k`, `v` -> `y`."""
    shapes = {"q": (1, 1, queries, 64), "k": (1, 1, keys, 64), "v": (1, 1, keys, 64)}
    inputs = [helper.make_tensor_value_info(n, kind, s) for n, s in shapes.items()]
    output = helper.make_tensor_value_info("y", kind, None)
    node = helper.make_node("Attention", list(shapes), ["y"], is_causal=is_causal)
    return helper.make_model(
        helper.make_graph([node], "attention", inputs, [output]),
        opset_imports=[helper.make_opsetid("", 23)],
        ir_version=10,
    )


@pytest.mark.sampled(2)
@pytest.mark.parametrize(
    ("queries", "keys", "kind", "is_causal", "arch"),
    [
        (150, 150, TensorProto.FLOAT, 1, "sm_80"),
        (150, 70, TensorProto.FLOAT16, 0, "sm_80"),
        (MANY, 70, TensorProto.FLOAT16, 0, "sm_80"),
        (150, 300, TensorProto.FLOAT16, 0, "sm_90"),
        pytest.param(150, 150, TensorProto.FLOAT16, 1, "sm_90", marks=pytest.mark.slow),
        (70, 150, TensorProto.BFLOAT16, 0, "sm_90"),
        pytest.param(300, 300, TensorProto.FLOAT, 1, "sm_90", marks=pytest.mark.slow),
    ],
)
def test_results_are_those_of_the_processor(
    queries: int, keys: int, kind: int, is_causal: int, arch: str, driver: FakeDriver
) -> None:
    model = attention(queries, keys, kind, is_causal)
    here, there = weft.compile(model), weft.compile(model, target=f"cuda -arch={arch}", cache=False)
    rng = np.random.default_rng(0)
    dtype = helper.tensor_dtype_to_np_dtype(kind)
    shapes = {"q": queries, "k": keys, "v": keys}
    given: dict[str, Array] = {n: rng.standard_normal((1, 1, rows, 64)).astype(dtype) for n, rows in shapes.items()}
    expected, made = here(**given), there(**given)
    tolerance = {np.dtype(np.float32): 2e-6, np.dtype(np.float16): 2e-3}.get(np.dtype(dtype), 2e-2)
    np.testing.assert_allclose(np.asarray(made, np.float32), np.asarray(expected, np.float32), rtol=0, atol=tolerance)
    del there
    assert driver.live()["blocks"] == 0


@pytest.mark.parametrize("kind", [TensorProto.FLOAT, TensorProto.FLOAT16], ids=["fp32", "fp16"])
def test_it_is_one_kernel(kind: int) -> None:
    made = build(attention(MANY, 512, kind), "cuda -arch=sm_90", cache=None)
    (kernel,) = made.kernels.values()
    assert ("cuda.wgmma_registers_f16" in kernel.flat) == (kind == TensorProto.FLOAT16)


def layer(rows: int) -> onnx.ModelProto:
    """Returns attention of two heads of size 64 to normalized vectors of 64 elements, which are added to it: `x` -> `y`."""
    rng = np.random.default_rng(0)
    weights = [onnx.numpy_helper.from_array(rng.standard_normal((64, 128), np.float32) / 8, n) for n in "qkv"]
    weights.append(onnx.numpy_helper.from_array(rng.standard_normal((128, 64), np.float32) / 11, "p"))
    weights += [
        onnx.numpy_helper.from_array(np.asarray(s, np.int64), n)
        for n, s in (("h", (1, rows, 2, 64)), ("w", (1, rows, 128)))
    ]
    weights += [onnx.numpy_helper.from_array(np.ones(64, np.float32), "scale")]
    nodes = [helper.make_node("LayerNormalization", ["x", "scale"], ["n"])]
    for n in "qkv":
        nodes += [
            helper.make_node("MatMul", ["n", n], [f"{n}m"]),
            helper.make_node("Reshape", [f"{n}m", "h"], [f"{n}r"]),
            helper.make_node("Transpose", [f"{n}r"], [f"{n}t"], perm=(0, 2, 1, 3)),
        ]
    nodes += [
        helper.make_node("Attention", ["qt", "kt", "vt"], ["a"]),
        helper.make_node("Transpose", ["a"], ["t"], perm=(0, 2, 1, 3)),
        helper.make_node("Reshape", ["t", "w"], ["j"]),
        helper.make_node("MatMul", ["j", "p"], ["m"]),
        helper.make_node("Add", ["m", "n"], ["y"]),
    ]
    x, y = (helper.make_tensor_value_info(n, TensorProto.FLOAT, (1, rows, 64)) for n in "xy")
    graph = helper.make_graph(nodes, "layer", [x], [y], weights)
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 23)], ir_version=10)


def rounded(candidates: Sequence[Candidate[Any]]) -> Candidate[Any]:
    """Takes rounded factors of products, which are not estimated to be faster for as few rows as these."""
    found = [c for c in candidates if isinstance(c.decision, RoundedFactors) and c.decision.rounded]
    return found[0] if found else cheapest(candidates)


@pytest.mark.slow
def test_factors_and_result_are_rounded_for_fragments(driver: FakeDriver) -> None:
    """Rounding takes no kernel: that of factors is part of their products, that of a result of what computes it."""
    model = layer(64)
    made = build(model, "cuda -arch=sm_90", CompileOptions(precision="bf16"), cache=None, choose=rounded)
    assert not any(g.nodes[0].op == "cast" for g in made.fused.groups)
    assert [len(g.outputs) for g in made.fused.groups] == [2, 1, 1, 1]
    (kernel,) = [k for key, k in made.kernels.items() if "softmax" in key]
    assert "cuda.wgmma_registers_bf16" in kernel.flat
    x = np.random.default_rng(1).standard_normal((1, 64, 64), np.float32)
    expected, found = weft.compile(model).run([x])[0], weft.Model(made.package).run([x])[0]
    np.testing.assert_allclose(found, expected, rtol=0, atol=2e-2 * np.abs(expected).max())
