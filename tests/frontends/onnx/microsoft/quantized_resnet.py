"""A small residual network, seeded, and the same quantised by ONNX Runtime into QOperator nodes."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Final, TypeAlias

import numpy as np
import onnx
from onnx import ModelProto
from onnxruntime.quantization import QuantFormat, QuantType, quantize_static
from tests.frontends.onnx.quantizer.networks import Samples

from weft.cli.onnx_builder import GraphBuilder, conv, gemm

Array: TypeAlias = "np.ndarray[Any, np.dtype[Any]]"

SIZE: Final = 16
"""The height and width of its images, of three channels."""


def small_resnet() -> ModelProto:
    """Returns a network of a stem, three residual blocks, a global mean and a classifier, for images [1, 3, SIZE, SIZE]."""
    g = GraphBuilder("resnet")
    x = g.op("Relu", conv(g, g.input("x", (1, 3, SIZE, SIZE)), (3, 8), bias=True))
    x = g.op("MaxPool", x, kernel_shape=[2, 2], strides=[2, 2])
    for channels, stride in (((8, 8), 1), ((8, 16), 2), ((16, 16), 1)):
        x = _block(g, x, channels, stride)
    g.output(gemm(g, g.op("Flatten", g.op("GlobalAveragePool", x)), (16, 10)), "y")
    return g.model()


def _block(g: GraphBuilder, x: str, channels: tuple[int, int], stride: int) -> str:
    """Adds a residual block without normalizations, which quantisation leaves as floats."""
    inner = g.op("Relu", conv(g, x, channels, stride=stride, bias=True))
    around = x if channels[0] == channels[1] else conv(g, x, channels, kernel=1, stride=stride, bias=True)
    return g.op("Relu", g.op("Add", conv(g, inner, (channels[1], channels[1]), bias=True), around))


def images(count: int, seed: int = 1) -> list[Array]:
    """Returns random images for the network."""
    rng = np.random.default_rng(seed)
    return [rng.standard_normal((1, 3, SIZE, SIZE)).astype(np.float32) for _ in range(count)]


def quantized(
    model: ModelProto,
    folder: Path,
    activations: QuantType = QuantType.QUInt8,
    form: QuantFormat = QuantFormat.QOperator,
) -> ModelProto:
    """Returns *model* quantised by ONNX Runtime, its channels each by a scale; *folder* holds the files.

    Weights have 7 bits: see `contrib_nodes.seven_bits`.
    """
    path, made = folder / "plain.onnx", folder / "quantised.onnx"
    onnx.save(model, path)
    types = {"activation_type": activations, "weight_type": QuantType.QInt8}
    samples = Samples([{"x": image} for image in images(4, seed=2)])
    quantize_static(path, made, samples, quant_format=form, per_channel=True, reduce_range=True, **types)
    return onnx.load(made)
