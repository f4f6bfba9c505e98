"""Four networks that are in no table of ours, built in code with fixed seeds: what tuning is tried on beside the eight.

unet         a small U-Net on images of 64 x 64 (Ronneberger et al., 2015): two levels, transposed convolutions, concatenations
ds_cnn       keyword spotting on 49 x 10 features (Zhang et al., "Hello Edge", 2017): depthwise-separable convolutions
convnext     blocks of ConvNeXt (Liu et al., 2022) on images of 56 x 56: depthwise 7 x 7, layer normalization, GELU
mlp_mixer    MLP-Mixer (Tolstikhin et al., 2021) on 64 patches of 16 x 16, four layers
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import onnx

from weft.cli.onnx_builder import GraphBuilder, batch_norm, conv, conv_transpose, gemm, linear


def unet(batch: int = 1) -> onnx.ModelProto:
    g = GraphBuilder("unet", seed=101)
    x = _twice(g, g.input("x", (batch, 3, 64, 64)), (3, 32))
    middle = _twice(g, _halved(g, x), (32, 64))
    low = _twice(g, _halved(g, middle), (64, 128))
    up = conv_transpose(g, low, (128, 64), kernel=2, stride=2, padding=0)
    joined = _twice(g, g.op("Concat", up, middle, axis=1), (128, 64))
    up = conv_transpose(g, joined, (64, 32), kernel=2, stride=2, padding=0)
    joined = _twice(g, g.op("Concat", up, x, axis=1), (64, 32))
    g.output(conv(g, joined, (32, 2), kernel=1, bias=True), "y")
    return g.model()


def ds_cnn(batch: int = 1, channels: int = 64) -> onnx.ModelProto:
    g = GraphBuilder("ds_cnn", seed=102)
    x = _conv_bn_relu(g, g.input("x", (batch, 1, 49, 10)), (1, channels), kernel=3, stride=2)
    for _ in range(4):
        x = _conv_bn_relu(g, x, (channels, channels), kernel=3, groups=channels)
        x = _conv_bn_relu(g, x, (channels, channels), kernel=1)
    x = g.op("Flatten", g.op("GlobalAveragePool", x), axis=1)
    g.output(g.op("Softmax", gemm(g, x, (channels, 12)), axis=1), "y")
    return g.model()


def convnext(batch: int = 1, width: int = 96, blocks: int = 3) -> onnx.ModelProto:
    g = GraphBuilder("convnext", seed=103)
    x = conv(g, g.input("x", (batch, 3, 224, 224)), (3, width), kernel=4, stride=4, padding=0, bias=True)
    for _ in range(blocks):
        y = conv(g, x, (width, width), kernel=7, groups=width, bias=True)
        y = layer_norm(g, g.op("Transpose", y, perm=[0, 2, 3, 1]), width)
        y = feed_forward(g, y, width, 4 * width)
        y = g.op("Mul", y, g.uniform((width,), 0.5, 1.0))
        x = g.op("Add", x, g.op("Transpose", y, perm=[0, 3, 1, 2]))
    x = g.op("Flatten", g.op("GlobalAveragePool", x), axis=1)
    g.output(gemm(g, x, (width, 100)), "y")
    return g.model()


def mlp_mixer(batch: int = 1, width: int = 256, layers: int = 4) -> onnx.ModelProto:
    g = GraphBuilder("mlp_mixer", seed=104)
    x = conv(g, g.input("x", (batch, 3, 128, 128)), (3, width), kernel=16, stride=16, padding=0, bias=True)
    x = g.op("Reshape", x, g.int64s((batch, width, 64)))
    x = g.op("Transpose", x, perm=[0, 2, 1])
    for _ in range(layers):
        y = g.op("Transpose", layer_norm(g, x, width), perm=[0, 2, 1])
        x = g.op("Add", x, g.op("Transpose", feed_forward(g, y, 64, 128), perm=[0, 2, 1]))
        x = g.op("Add", x, feed_forward(g, layer_norm(g, x, width), width, 4 * width))
    g.output(gemm(g, g.op("ReduceMean", layer_norm(g, x, width), axes=[1], keepdims=0), (width, 100)), "y")
    return g.model()


def _conv_bn_relu(
    g: GraphBuilder, x: str, channels: tuple[int, int], kernel: int, stride: int = 1, groups: int = 1
) -> str:
    return g.op("Relu", batch_norm(g, conv(g, x, channels, kernel, stride, groups=groups), channels[1]))


def _twice(g: GraphBuilder, x: str, channels: tuple[int, int]) -> str:
    return _conv_bn_relu(g, _conv_bn_relu(g, x, channels, 3), (channels[1], channels[1]), 3)


def _halved(g: GraphBuilder, x: str) -> str:
    return g.op("MaxPool", x, kernel_shape=[2, 2], strides=[2, 2])


def layer_norm(g: GraphBuilder, x: str, width: int) -> str:
    return g.op("LayerNormalization", x, g.uniform((width,), 0.8, 1.2), g.normal((width,), 0.05), axis=-1, epsilon=1e-6)


def feed_forward(g: GraphBuilder, x: str, width: int, inner: int) -> str:
    return linear(g, _gelu(g, linear(g, x, (width, inner))), (inner, width))


def _gelu(g: GraphBuilder, x: str) -> str:
    """The exact GELU, as PyTorch writes it."""
    half = g.op("Add", g.op("Erf", g.op("Div", x, g.scalar(float(np.sqrt(2.0))))), g.scalar(1.0))
    return g.op("Mul", g.op("Mul", x, half), g.scalar(0.5))


OWN: dict[str, Callable[[int], onnx.ModelProto]] = {
    "unet": unet,
    "ds_cnn": ds_cnn,
    "convnext": convnext,
    "mlp_mixer": mlp_mixer,
}


def write_own(name: str, folder: Path, batch: int = 1) -> Path:
    """Write one of `OWN` into *folder*, unless it is there; return its path."""
    path = folder / f"{name}-{batch}.onnx"
    if not path.exists():
        folder.mkdir(parents=True, exist_ok=True)
        onnx.save(OWN[name](batch), path)
    return path
