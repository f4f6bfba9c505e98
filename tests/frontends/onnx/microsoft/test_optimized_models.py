"""Models as ONNX Runtime's own optimiser writes them: they compile, and give what the model gives before it."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final

import numpy as np
import onnx
import onnxruntime
from onnx import ModelProto, NodeProto, helper
from onnxruntime.quantization import QuantFormat, QuantType, quantize_dynamic
from tests.frontends.onnx.microsoft.quantized_resnet import images, quantized, small_resnet
from tests.frontends.onnx.nodes import Array, by_runtime, float_inputs, floats, model_of

import weft

WIDTH, HEADS, INNER = 16, 4, 32
SHAPE: Final = (2, 6, WIDTH)


class _Block:
    """The nodes and weights of a transformer's encoder block, as PyTorch exports it."""

    def __init__(self) -> None:
        self.rng = np.random.default_rng(0)
        self.nodes: list[NodeProto] = []
        self.weights: dict[str, Array] = {}

    def node(self, op: str, inputs: Sequence[str], **attributes: Any) -> str:
        name = f"{op}{len(self.nodes)}"
        self.nodes.append(helper.make_node(op, list(inputs), [name], name, **attributes))
        return name

    def constant(self, value: Any) -> str:
        name = f"c{len(self.weights)}"
        self.weights[name] = np.asarray(value)
        return name

    def scalar(self, value: float) -> str:
        return self.constant(np.float32(value))

    def weight(self, *shape: int) -> str:
        return self.constant((self.rng.standard_normal(shape) * 0.2).astype(np.float32))

    def linear(self, x: str, given: int, made: int) -> str:
        return self.node("Add", [self.node("MatMul", [x, self.weight(given, made)]), self.weight(made)])

    def heads(self, x: str, perm: list[int]) -> str:
        split = self.constant([0, 0, HEADS, WIDTH // HEADS])
        return self.node("Transpose", [self.node("Reshape", [self.linear(x, WIDTH, WIDTH), split])], perm=perm)

    def attention(self, x: str) -> str:
        q, k, v = self.heads(x, [0, 2, 1, 3]), self.heads(x, [0, 2, 3, 1]), self.heads(x, [0, 2, 1, 3])
        scores = self.node("Div", [self.node("MatMul", [q, k]), self.scalar((WIDTH / HEADS) ** 0.5)])
        seen = self.node("MatMul", [self.node("Softmax", [scores], axis=-1), v])
        joined = self.node("Reshape", [self.node("Transpose", [seen], perm=[0, 2, 1, 3]), self.constant([0, 0, WIDTH])])
        return self.linear(joined, WIDTH, WIDTH)

    def gelu(self, x: str) -> str:
        error = self.node("Erf", [self.node("Div", [x, self.scalar(2**0.5)])])
        return self.node("Mul", [self.node("Mul", [x, self.node("Add", [error, self.scalar(1)])]), self.scalar(0.5)])

    def normalized(self, x: str, y: str) -> str:
        added = self.node("Add", [x, y])
        return self.node("LayerNormalization", [added, self.weight(WIDTH), self.weight(WIDTH)], axis=-1)


def encoder() -> ModelProto:
    b = _Block()
    x = b.normalized(b.attention("x"), "x")
    y = b.normalized(b.linear(b.gelu(b.linear(x, WIDTH, INNER)), INNER, WIDTH), x)
    return model_of(b.nodes, float_inputs(x=SHAPE), [y], b.weights)


def optimized(model: ModelProto, folder: Path) -> tuple[ModelProto, set[str]]:
    """Returns *model* as ONNX Runtime writes it with its extended optimisations, and its own operators in that."""
    options = onnxruntime.SessionOptions()
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_ENABLE_EXTENDED
    options.optimized_model_filepath = str(folder / "optimised.onnx")
    options.log_severity_level = 4
    typed = onnx.shape_inference.infer_shapes(model)
    onnxruntime.InferenceSession(typed.SerializeToString(), options, providers=["CPUExecutionProvider"])
    made = onnx.load(folder / "optimised.onnx")
    return made, {n.op_type for n in made.graph.node if n.domain == "com.microsoft"}


def test_encoder(tmp_path: Path) -> None:
    model = encoder()
    made, own = optimized(model, tmp_path)
    assert own >= {"SkipLayerNormalization", "FusedMatMul", "Gelu"}
    x = floats(*SHAPE)
    np.testing.assert_allclose(weft.compile(made)(x), by_runtime(model, {"x": x})[0], rtol=1e-5, atol=2e-6)


def test_dynamically_quantized_encoder(tmp_path: Path) -> None:
    plain, small = tmp_path / "plain.onnx", tmp_path / "small.onnx"
    onnx.save(encoder(), plain)
    quantize_dynamic(plain, small, weight_type=QuantType.QInt8)
    made, own = optimized(onnx.load(small), tmp_path)
    assert own >= {"DynamicQuantizeMatMul", "MatMulIntegerToFloat"}
    x = floats(*SHAPE)
    np.testing.assert_allclose(weft.compile(made)(x), by_runtime(made, {"x": x})[0], rtol=1e-5, atol=2e-6)


def test_residual_network(tmp_path: Path) -> None:
    model = small_resnet()
    made, own = optimized(model, tmp_path)
    assert "FusedConv" in own
    [x] = images(1)
    np.testing.assert_allclose(weft.compile(made)(x), by_runtime(model, {"x": x})[0], rtol=1e-4, atol=1e-5)


def test_residual_network_with_quantized_edges(tmp_path: Path) -> None:
    """QuantizeLinear and DequantizeLinear around each operator become QLinearAdd, QLinearGlobalAveragePool and QGemm."""
    made, own = optimized(quantized(small_resnet(), tmp_path, form=QuantFormat.QDQ), tmp_path)
    assert own >= {"QLinearAdd", "QGemm"}
    [x] = images(1)
    np.testing.assert_array_equal(weft.compile(made)(x), by_runtime(made, {"x": x})[0])
