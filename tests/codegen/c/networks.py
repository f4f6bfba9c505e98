"""Networks whose C source is tested: the digits example, and deep Q-learning's and a perceptron's, made in code."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Final

import onnx
from tests.models import (
    lstm_step,
    mlp,
    tiny_bert_layer,
    tiny_dcgan,
    tiny_gpt2_decode,
    tiny_mobilenet,
    tiny_resnet,
)

from weft.cli.onnx_builder import GraphBuilder, conv, gemm

DIGITS: Final = Path(__file__).resolve().parents[3] / "examples" / "digits"


def small_dqn() -> onnx.ModelProto:
    """Returns the network of deep Q-learning with a quarter of its channels: `x` [1, 4, 84, 84] -> `y` [1, 18]."""
    g = GraphBuilder("dqn")
    x = g.input("x", (1, 4, 84, 84))
    for channels, kernel, stride in (((4, 8), 8, 4), ((8, 16), 4, 2), ((16, 16), 3, 1)):
        x = g.op("Relu", conv(g, x, channels, kernel, stride, padding=0, bias=True))
    x = g.op("Relu", gemm(g, g.op("Flatten", x, axis=1), (784, 128)))
    g.output(gemm(g, x, (128, 18)), "y")
    return g.model()


NETWORKS: Final[dict[str, Callable[[], onnx.ModelProto]]] = {
    "digits": lambda: onnx.load(DIGITS / "digits.onnx"),
    "dqn": small_dqn,
    "mlp": lambda: mlp(batch=2),
}
OTHERS: Final[dict[str, Callable[[], onnx.ModelProto]]] = {
    "resnet": tiny_resnet,
    "lstm": lstm_step,
    "bert": tiny_bert_layer,
    "gpt2": tiny_gpt2_decode,
    "dcgan": tiny_dcgan,
    "mobilenet": tiny_mobilenet,
}
