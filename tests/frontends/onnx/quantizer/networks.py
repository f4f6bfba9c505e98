"""Small seeded networks with the architecture of those that people quantise, and calibration data for the quantiser."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Final

from onnx import ModelProto
from onnxruntime.quantization import CalibrationDataReader
from tests.frontends.onnx.nodes import Array, Inputs
from tests.models import random_inputs, tiny_bert_layer

from weft.cli.demo_models import basic_block, conv_bn, max_pool
from weft.cli.onnx_builder import GraphBuilder, gemm

SIZE: Final = 32
"""The height and width of images, of three channels."""

CLASSES: Final = 20


def resnet18() -> ModelProto:
    """Returns ResNet-18 (He et al., 2015) of an eighth of its channels: `x` [1, 3, SIZE, SIZE] -> `y` [1, CLASSES]."""
    g = GraphBuilder("resnet18")
    x = max_pool(g, g.op("Relu", conv_bn(g, g.input("x", (1, 3, SIZE, SIZE)), (3, 8), kernel=7, stride=2)))
    inner = 8
    for outer in (8, 16, 32, 64):
        x = basic_block(g, x, (inner, outer), stride=1 if inner == outer else 2)
        x = basic_block(g, x, (outer, outer), stride=1)
        inner = outer
    return _classified(g, x, inner)


def mobilenet_v2() -> ModelProto:
    """Returns a MobileNet v2 (Sandler et al., 2018) of six inverted residuals: `x` [1, 3, SIZE, SIZE] -> `y` [1, CLASSES]."""
    g = GraphBuilder("mobilenet_v2")
    x = _relu6(g, conv_bn(g, g.input("x", (1, 3, SIZE, SIZE)), (3, 8), stride=2))
    x = _inverted_residual(g, x, (8, 8), expansion=1, stride=1)
    for inner, outer, stride in ((8, 12, 2), (12, 12, 1), (12, 16, 2), (16, 16, 1), (16, 24, 1)):
        x = _inverted_residual(g, x, (inner, outer), expansion=6, stride=stride)
    return _classified(g, _relu6(g, conv_bn(g, x, (24, 64), kernel=1)), 64)


def bert_layer() -> ModelProto:
    """Returns a layer of BERT (Devlin et al., 2018): `x` [1, 8, 64] and `attention_mask` [1, 8] -> `y` [1, 8, 64]."""
    return tiny_bert_layer(tokens=8, heads=4, width=64)


NETWORKS: Final[dict[str, Callable[[], ModelProto]]] = {
    "resnet18": resnet18,
    "mobilenet_v2": mobilenet_v2,
    "bert_layer": bert_layer,
}


def _inverted_residual(g: GraphBuilder, x: str, channels: tuple[int, int], expansion: int, stride: int) -> str:
    inner, outer = channels
    wide, y = inner * expansion, x
    if expansion > 1:
        y = _relu6(g, conv_bn(g, y, (inner, wide), kernel=1))
    y = _relu6(g, conv_bn(g, y, (wide, wide), stride=stride, groups=wide))
    y = conv_bn(g, y, (wide, outer), kernel=1)
    return g.op("Add", x, y) if stride == 1 and inner == outer else y


def _relu6(g: GraphBuilder, x: str) -> str:
    return g.op("Clip", x, g.scalar(0.0), g.scalar(6.0))


def _classified(g: GraphBuilder, x: str, channels: int) -> ModelProto:
    g.output(gemm(g, g.op("Flatten", g.op("GlobalAveragePool", x), axis=1), (channels, CLASSES)), "y")
    return g.model()


class Samples(CalibrationDataReader):  # type: ignore[misc]  # the package has no types
    """Inputs that the quantiser runs a model on, to see the ranges of its values."""

    def __init__(self, feeds: Sequence[Inputs]) -> None:
        self._feeds = feeds
        self.rewind()

    def rewind(self) -> None:
        """Begins with the first again."""
        self._left = iter(self._feeds)

    def get_next(self) -> dict[str, Array] | None:
        """Returns the next inputs, or None after the last."""
        found = next(self._left, None)
        return None if found is None else dict(found)


def samples(model: ModelProto) -> Samples:
    """Returns four random inputs of a model."""
    return Samples([random_inputs(model, seed=10 + k) for k in range(4)])
