"""Products of quantised tensors in ONNX Runtime's own operators against it, to the last bit, and a whole quantised network."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from onnx import numpy_helper
from onnxruntime.quantization import QuantFormat, QuantType
from tests.frontends.onnx.microsoft.contrib_nodes import check_equal, contrib_model, integers, seven_bits
from tests.frontends.onnx.microsoft.quantized_resnet import images, quantized, small_resnet
from tests.frontends.onnx.nodes import Array, by_runtime, floats

import weft

Weights = dict[str, Any]

STEP, ZERO = np.float32(0.02), np.uint8(100)


def steps(count: int) -> Array:
    """Returns a scale for each of *count* columns."""
    return np.linspace(0.004, 0.01, count).astype(np.float32)


@pytest.mark.parametrize("transposed", [0, 1])
@pytest.mark.parametrize("inputs", ["a s z b t u c v w", "a s z b t u - v w", "a s z b t u c", "a s z b t u"])
def test_gemm(inputs: str, transposed: int) -> None:
    feeds = {"a": integers(np.uint8, (5, 7), 1)}
    b = seven_bits((7, 4), 2)
    weights: Weights = {"s": STEP, "z": ZERO, "b": b.T if transposed else b, "t": steps(4), "u": np.zeros(4, np.int8)}
    weights |= {"c": integers(np.int32, (4,), 3, -1000, 1000), "v": np.float32(0.03), "w": np.uint8(99)}
    check_equal(contrib_model("QGemm", inputs, feeds, weights, transB=transposed, alpha=0.5), feeds)


@pytest.mark.parametrize("by_column", [False, True])
@pytest.mark.parametrize("bias", [False, True])
def test_products_as_floats(by_column: bool, bias: bool) -> None:
    weights: Weights = {"b": seven_bits((7, 4), 2), "t": steps(4) if by_column else STEP}
    weights |= {
        "u": integers(np.int8, (4,), 3, -5, 5) if by_column else np.int8(3),
        "s": STEP,
        "z": ZERO,
        "c": floats(4),
    }
    feeds = {"a": floats(3, 5, 7)}
    check_equal(contrib_model("DynamicQuantizeMatMul", f"a b t u{' c' if bias else ''}", feeds, weights), feeds)
    feeds = {"a": integers(np.uint8, (3, 5, 7), 1)}
    check_equal(contrib_model("MatMulIntegerToFloat", f"a b s t z u{' c' if bias else ''}", feeds, weights), feeds)


def test_dynamic_range_of_zeros() -> None:
    feeds = {"a": np.zeros((2, 3), np.float32)}
    weights: Weights = {"b": integers(np.int8, (3, 4)), "t": STEP}
    [y] = check_equal(contrib_model("DynamicQuantizeMatMul", "a b t", feeds, weights), feeds)
    assert not y.any()


@pytest.mark.parametrize("last", [0, 1])
def test_convolution(last: int) -> None:
    feeds = {"x": integers(np.uint8, (1, 6, 5, 4) if last else (1, 4, 6, 5), 1)}
    weights: Weights = {"s": STEP, "z": ZERO, "w": seven_bits((3, 4, 3, 3), 2), "t": STEP, "u": np.int8(0)}
    weights |= {"v": np.float32(0.3), "o": np.uint8(99)}
    attributes: dict[str, Any] = {"pads": [1, 1, 1, 1], "channels_last": last}
    check_equal(contrib_model("QLinearConv", "x s z w t u v o", feeds, weights, **attributes), feeds)


def test_quantize_and_dequantize() -> None:
    feeds = {"x": floats(3, 4)}
    check_equal(contrib_model("QuantizeLinear", "x s z", feeds, {"s": STEP, "z": np.uint16(100)}), feeds)
    feeds = {"x": integers(np.uint8, (3, 4))}
    weights: Weights = {"s": steps(4), "z": integers(np.uint8, (4,), 1)}
    check_equal(contrib_model("DequantizeLinear", "x s z", feeds, weights, axis=1), feeds)


@pytest.mark.parametrize("activations", [QuantType.QUInt8, QuantType.QInt8])
def test_network_between_quantizations(activations: QuantType, tmp_path: Path) -> None:
    """The same with its tensors quantised and dequantised between floating-point operators: within one quantum."""
    model = quantized(small_resnet(), tmp_path, activations, QuantFormat.QDQ)
    last = next(n for n in model.graph.node if n.output[0] == "y")
    quantum = next(numpy_helper.to_array(t) for t in model.graph.initializer if t.name == last.input[1])
    compiled = weft.compile(model)
    for x in images(2):
        [wanted] = by_runtime(model, {"x": x})
        assert np.abs(compiled(x) - wanted).max() <= 1.001 * quantum


@pytest.mark.parametrize("activations", [QuantType.QUInt8, QuantType.QInt8])
def test_quantized_network(activations: QuantType, tmp_path: Path) -> None:
    """A residual network that ONNX Runtime has quantised compiles, and gives what it gives there to the last bit."""
    model = quantized(small_resnet(), tmp_path, activations)
    assert {n.op_type for n in model.graph.node} >= {"QLinearConv", "QLinearAdd", "QLinearGlobalAveragePool", "QGemm"}
    compiled = weft.compile(model)
    for x in images(2):
        [wanted] = by_runtime(model, {"x": x})
        np.testing.assert_array_equal(compiled(x), wanted)
