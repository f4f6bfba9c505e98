"""The network that ``weft demo`` compiles, made in code: nothing is downloaded, no framework is needed."""

import onnx

from weft.cli.onnx_builder import GraphBuilder, batch_norm, conv, gemm

STAGE_WIDTHS = (64, 128, 256, 512)
BLOCKS_PER_STAGE = 2
CLASSES = 1000


def resnet18(seed: int = 0) -> onnx.ModelProto:
    """Return ResNet-18 with random weights: input ``x`` [1, 3, 224, 224], output ``y`` [1, 1000], float32.

    Batch normalizations are nodes of their own, as an exporter leaves them. Weights are He-normal and the last
    normalization of a block scales by less than one, so activations stay of order one through all 18 layers.
    Architecture: He et al., "Deep Residual Learning for Image Recognition" (2015), table 1.
    """
    g = GraphBuilder("resnet18", seed)
    x = conv_bn(g, g.input("x", (1, 3, 224, 224)), (3, STAGE_WIDTHS[0]), kernel=7, stride=2)
    x = max_pool(g, g.op("Relu", x))
    inner = STAGE_WIDTHS[0]
    for stage, width in enumerate(STAGE_WIDTHS):
        for block in range(BLOCKS_PER_STAGE):
            x = basic_block(g, x, (inner, width), stride=2 if stage > 0 and block == 0 else 1)
            inner = width
    x = g.op("Flatten", g.op("GlobalAveragePool", x), axis=1)
    g.output(gemm(g, x, (inner, CLASSES)), "y")
    return g.model()


def basic_block(g: GraphBuilder, x: str, channels: tuple[int, int], stride: int) -> str:
    """Add a residual block of two 3x3 convolutions; the shortcut is projected where the shape changes."""
    width = channels[1]
    y = g.op("Relu", conv_bn(g, x, channels, stride=stride))
    y = conv_bn(g, y, (width, width), scale=(0.2, 0.6))
    if stride != 1 or channels[0] != width:
        x = conv_bn(g, x, channels, kernel=1, stride=stride)
    return g.op("Relu", g.op("Add", y, x))


def conv_bn(
    g: GraphBuilder,
    x: str,
    channels: tuple[int, int],
    kernel: int = 3,
    stride: int = 1,
    *,
    groups: int = 1,
    scale: tuple[float, float] = (0.5, 1.0),
) -> str:
    """Add a convolution without bias and its batch normalization."""
    return batch_norm(g, conv(g, x, channels, kernel, stride, groups=groups), channels[1], scale)


def max_pool(g: GraphBuilder, x: str) -> str:
    """Add a 3x3 max pooling of stride 2 and padding 1."""
    window = {"kernel_shape": [3, 3], "pads": [1, 1, 1, 1], "strides": [2, 2], "dilations": [1, 1]}
    return g.op("MaxPool", x, ceil_mode=0, **window)
