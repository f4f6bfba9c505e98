"""A small residual network, seeded, and the same quantised by ONNX Runtime into QOperator nodes."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final, TypeAlias

import numpy as np
import onnx
from onnx import ModelProto, NodeProto, helper, numpy_helper
from onnxruntime.quantization import CalibrationDataReader, QuantFormat, QuantType, quantize_static

Array: TypeAlias = "np.ndarray[Any, np.dtype[Any]]"

SIZE: Final = 16
"""The height and width of its images, of three channels."""


class _Builder:
    """Adds layers of random weights to a graph."""

    def __init__(self) -> None:
        self.rng = np.random.default_rng(0)
        self.nodes: list[NodeProto] = []
        self.weights: list[Any] = []

    def node(self, op: str, inputs: Sequence[str], **attributes: Any) -> str:
        name = f"{op.lower()}{len(self.nodes)}"
        self.nodes.append(helper.make_node(op, list(inputs), [name], name, **attributes))
        return name

    def weight(self, *shape: int, scale: float) -> str:
        name = f"w{len(self.weights)}"
        a = (self.rng.standard_normal(shape) * scale).astype(np.float32)
        self.weights.append(numpy_helper.from_array(a, name))
        return name

    def conv(self, x: str, given: int, made: int, kernel: int, stride: int = 1) -> str:
        w = self.weight(made, given, kernel, kernel, scale=(2 / (given * kernel * kernel)) ** 0.5)
        pads = [kernel // 2] * 4
        return self.node("Conv", [x, w, self.weight(made, scale=0.1)], pads=pads, strides=[stride, stride])

    def block(self, x: str, given: int, made: int, stride: int) -> str:
        inner = self.node("Relu", [self.conv(x, given, made, 3, stride)])
        around = x if given == made and stride == 1 else self.conv(x, given, made, 1, stride)
        return self.node("Relu", [self.node("Add", [self.conv(inner, made, made, 3), around])])


def small_resnet() -> ModelProto:
    """Returns a network of a stem, three residual blocks, a global mean and a classifier, for images [1, 3, SIZE, SIZE]."""
    b = _Builder()
    x = b.node("MaxPool", [b.node("Relu", [b.conv("x", 3, 8, 3)])], kernel_shape=[2, 2], strides=[2, 2])
    for given, made, stride in ((8, 8, 1), (8, 16, 2), (16, 16, 1)):
        x = b.block(x, given, made, stride)
    flat = b.node("Flatten", [b.node("GlobalAveragePool", [x])])
    last = b.node("Gemm", [flat, b.weight(10, 16, scale=0.3), b.weight(10, scale=0.1)], transB=1)
    kind = onnx.TensorProto.FLOAT
    graph = helper.make_graph(
        b.nodes,
        "resnet",
        [helper.make_tensor_value_info("x", kind, [1, 3, SIZE, SIZE])],
        [helper.make_tensor_value_info(last, kind, [1, 10])],
        b.weights,
    )
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=10)


def images(count: int, seed: int = 1) -> list[Array]:
    """Returns random images for the network."""
    rng = np.random.default_rng(seed)
    return [rng.standard_normal((1, 3, SIZE, SIZE)).astype(np.float32) for _ in range(count)]


class _Images(CalibrationDataReader):  # type: ignore[misc]  # the package has no types
    def __init__(self) -> None:
        self.left = images(4, seed=2)

    def get_next(self) -> dict[str, Array] | None:
        return {"x": self.left.pop()} if self.left else None


def quantized(
    model: ModelProto,
    folder: Path,
    activations: QuantType = QuantType.QUInt8,
    form: QuantFormat = QuantFormat.QOperator,
) -> ModelProto:
    """Returns *model* quantised by ONNX Runtime, its channels each by a scale; *folder* holds the files."""
    path, made = folder / "plain.onnx", folder / "quantised.onnx"
    onnx.save(model, path)
    types = {"activation_type": activations, "weight_type": QuantType.QInt8}
    quantize_static(path, made, _Images(), quant_format=form, per_channel=True, **types)
    return onnx.load(made)
