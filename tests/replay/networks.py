"""The networks of the benchmarks at their real sizes, made in code; of layers that are alike, one or two."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Final

import numpy as np
import onnx
from onnx import TensorProto
from tests.models import lstm_step, mlp, tiny_bert_layer, tiny_gpt2_decode

from weft.cli.demo_models import conv_bn, resnet18
from weft.cli.onnx_builder import GraphBuilder, batch_norm, conv, conv_transpose, gemm, linear

SEPARABLE: Final = [
    (64, 1),
    (128, 2),
    (128, 1),
    (256, 2),
    (256, 1),
    (512, 2),
    (512, 1),
    (512, 1),
    (1024, 2),
    (1024, 1),
]
"""Channels and strides of MobileNet's depthwise separable blocks; of five equal ones, two."""


def mobilenet() -> onnx.ModelProto:
    """Returns MobileNet v1: `x` [1, 3, 224, 224] -> `y` [1, 1000]."""
    g = GraphBuilder("mobilenet_v1")
    x, inner = g.op("Relu", conv_bn(g, g.input("x", (1, 3, 224, 224)), (3, 32), stride=2)), 32
    for outer, stride in SEPARABLE:
        x = g.op("Relu", conv_bn(g, x, (inner, inner), stride=stride, groups=inner))
        x, inner = g.op("Relu", conv_bn(g, x, (inner, outer), kernel=1)), outer
    g.output(gemm(g, g.op("Flatten", g.op("GlobalAveragePool", x), axis=1), (inner, 1000)), "y")
    return g.model()


def dqn() -> onnx.ModelProto:
    """Returns the convolutional network of deep Q-learning: `x` [1, 4, 84, 84] -> `y` [1, 18]."""
    g = GraphBuilder("dqn")
    x = g.input("x", (1, 4, 84, 84))
    for channels, kernel, stride in (((4, 32), 8, 4), ((32, 64), 4, 2), ((64, 64), 3, 1)):
        x = g.op("Relu", conv(g, x, channels, kernel, stride, padding=0, bias=True))
    x = g.op("Relu", gemm(g, g.op("Flatten", x, axis=1), (3136, 512)))
    g.output(gemm(g, x, (512, 18)), "y")
    return g.model()


def dcgan() -> onnx.ModelProto:
    """Returns DCGAN's generator: `x` [1, 100, 1, 1] -> `y` [1, 3, 64, 64]."""
    g = GraphBuilder("dcgan")
    x, inner = g.input("x", (1, 100, 1, 1)), 100
    for outer, stride, padding in ((512, 1, 0), (256, 2, 1), (128, 2, 1), (64, 2, 1)):
        x = batch_norm(g, conv_transpose(g, x, (inner, outer), 4, stride, padding), outer)
        x, inner = g.op("Relu", x), outer
    g.output(g.op("Tanh", conv_transpose(g, x, (inner, 3), 4, 2, 1)), "y")
    return g.model()


def embeddings() -> onnx.ModelProto:
    """Returns what stands before and after BERT's layers: embeddings with their norm, and the pooler."""
    g = GraphBuilder("embeddings")
    words = g.op("Gather", g.normal((30522, 768), 0.5), g.input("input_ids", (1, 128), TensorProto.INT64))
    kinds = g.op("Gather", g.normal((2, 768), 0.5), g.input("token_type_ids", (1, 128), TensorProto.INT64))
    x = g.op("Add", g.op("Add", words, kinds), g.normal((1, 128, 768), 0.1))
    scale, bias = g.uniform((768,), 0.8, 1.2), g.normal((768,), 0.05)
    x = g.op("LayerNormalization", x, scale, bias, axis=-1, epsilon=1e-12)
    g.output(x, "hidden")
    first = g.op("Gather", x, g.constant(np.asarray(0, np.int64)), axis=1)
    g.output(g.op("Tanh", linear(g, first, (768, 768))), "pooled")
    return g.model()


def vocabulary() -> onnx.ModelProto:
    """Returns the last layer of a language model: `h` [1, 650] -> `logits` [1, 10000]."""
    g = GraphBuilder("vocabulary")
    g.output(gemm(g, g.input("h", (1, 650)), (650, 10000)), "logits")
    return g.model()


NETWORKS: Final[dict[str, Callable[[], onnx.ModelProto]]] = {
    "resnet18": resnet18,
    "mobilenet": mobilenet,
    "dqn": dqn,
    "dcgan": dcgan,
    "mlp": partial(mlp, 64, (1024, 1024, 1024, 1024)),
    "lstm": partial(lstm_step, 1, 650, 650),
    "lstm_vocabulary": vocabulary,
    "bert": partial(tiny_bert_layer, 128, 12, 768),
    "bert_embeddings": embeddings,
    "gpt2": partial(tiny_gpt2_decode, 1, 256, 12, 768),
}
