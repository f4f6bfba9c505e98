"""Models as ONNX Runtime's own optimiser writes them: they compile, and give what the model gives before it."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import onnx
import onnxruntime
from onnx import ModelProto
from onnxruntime.quantization import QuantFormat, QuantType, quantize_dynamic
from tests.frontends.onnx.microsoft.quantized_resnet import images, quantized, small_resnet
from tests.frontends.onnx.nodes import by_runtime
from tests.models import random_inputs, tiny_bert_layer

import weft


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
    model = tiny_bert_layer()
    made, own = optimized(model, tmp_path)
    assert own >= {"SkipLayerNormalization", "FusedMatMul", "Gelu"}
    feeds = random_inputs(model)
    np.testing.assert_allclose(weft.compile(made)(**feeds), by_runtime(model, feeds)[0], rtol=1e-5, atol=2e-6)


def test_dynamically_quantized_encoder(tmp_path: Path) -> None:
    plain, small = tmp_path / "plain.onnx", tmp_path / "small.onnx"
    onnx.save(tiny_bert_layer(), plain)
    quantize_dynamic(plain, small, weight_type=QuantType.QInt8, reduce_range=True)  # see contrib_nodes.seven_bits
    made, own = optimized(onnx.load(small), tmp_path)
    assert own >= {"DynamicQuantizeMatMul", "MatMulIntegerToFloat"}
    feeds = random_inputs(made)
    np.testing.assert_allclose(weft.compile(made)(**feeds), by_runtime(made, feeds)[0], rtol=1e-5, atol=2e-6)


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
