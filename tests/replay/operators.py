"""Single operators: the convolutions of the TVM paper, and shapes that are multiples of nothing.

    OPERATORS["C6"]()          the ONNX model of one of them

C1 to C12 and D1 to D9 are the TVM paper's, padded so that stride 1 keeps the size.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from math import prod
from typing import Final

import numpy as np
import onnx
from benchmarks.convolutions import CONVOLUTIONS, DEPTHWISE
from onnx import TensorProto

from weft.cli.onnx_builder import Attribute, Dim, GraphBuilder

Shape = tuple[Dim, ...]


def convolution(
    shape: Shape,
    outer: int,
    kernel: tuple[int, int],
    *,
    stride: int = 1,
    groups: int = 1,
    dilation: int = 1,
    pad: bool = True,
) -> onnx.ModelProto:
    """Returns a convolution of `x` [N, C, H, W] without bias, its size kept where it is padded at stride 1."""
    inner = shape[1]
    assert isinstance(inner, int)
    pads = [(k - 1) * dilation // 2 if pad else 0 for k in kernel]
    return of(
        "Conv",
        [shape],
        [(outer, inner // groups, *kernel)],
        strides=[stride] * 2,
        pads=pads * 2,
        group=groups,
        dilations=[dilation] * 2,
        kernel_shape=list(kernel),
    )


def of(
    op: str,
    inputs: Sequence[Shape],
    weights: Sequence[tuple[int, ...]] = (),
    dtype: int = TensorProto.FLOAT,
    **attributes: Attribute,
) -> onnx.ModelProto:
    """Returns a model of one operator, with inputs and seeded weights of these shapes."""
    g = GraphBuilder(op)
    names = [g.input(f"x{n}", shape, dtype) for n, shape in enumerate(inputs)]
    names += [g.normal(shape, prod(shape[1:]) ** -0.5) for shape in weights]
    g.output(g.op(op, *names, **attributes), "y", TensorProto.INT64 if op == "ArgMax" else dtype)
    return g.model()


def reduced(op: str, shape: Shape, axes: Sequence[int]) -> onnx.ModelProto:
    """Returns a reduction of `x` over *axes*."""
    if op != "ReduceSum":
        return of(op, [shape], axes=list(axes))
    g = GraphBuilder(op)
    g.output(g.op(op, g.input("x", shape), g.int64s(list(axes))), "y")
    return g.model()


def summed(shape: Shape, axis: int) -> onnx.ModelProto:
    """Returns the sums of the elements up to each, along *axis*."""
    g = GraphBuilder("summed")
    g.output(g.op("CumSum", g.input("x", shape), g.int64s(axis)), "y")
    return g.model()


def gathered(shape: tuple[int, int], rows: int) -> onnx.ModelProto:
    """Returns the rows of a table, chosen by `ids`."""
    g = GraphBuilder("gather")
    g.output(g.op("Gather", g.normal(shape, 0.5), g.input("ids", (rows,), TensorProto.INT64)), "y")
    return g.model()


def quantized(m: int, k: int, n: int) -> onnx.ModelProto:
    """Returns a product of bytes [m, k] and [k, n] in 32-bit integers."""
    g = GraphBuilder("quantized")
    a, b = g.input("a", (m, k), TensorProto.UINT8), g.weight(g.rng.integers(-128, 128, (k, n)).astype(np.int8))
    g.output(g.op("MatMulInteger", a, b), "y", TensorProto.INT32)
    return g.model()


def resized(shape: tuple[int, ...], scale: float, mode: str) -> onnx.ModelProto:
    """Returns an image, resized in its last two dimensions."""
    g = GraphBuilder("resize")
    scales = g.constant(np.array([1, 1, scale, scale], np.float32))
    g.output(g.op("Resize", g.input("x", shape), "", scales, mode=mode), "y")
    return g.model()


def _paper() -> dict[str, Callable[[], onnx.ModelProto]]:
    made: dict[str, Callable[[], onnx.ModelProto]] = {}
    for name, (size, inner, outer, kernel, stride) in CONVOLUTIONS.items():
        made[name] = partial(convolution, (1, inner, size, size), outer, (kernel, kernel), stride=stride)
    for name, (size, channels, stride) in DEPTHWISE.items():
        made[name] = partial(convolution, (1, channels, size, size), channels, (3, 3), stride=stride, groups=channels)
    return made


ODD: Final[dict[str, Callable[[], onnx.ModelProto]]] = {
    "conv_odd": partial(convolution, (1, 17, 18, 18), 209, (3, 3)),
    "conv_narrow": partial(convolution, (2, 64, 21, 13), 11, (3, 3)),
    "conv_wide": partial(convolution, (1, 40, 9, 61), 72, (1, 7)),
    "conv_no_pad": partial(convolution, (1, 24, 31, 29), 50, (5, 5), pad=False),
    "conv_strided": partial(convolution, (3, 20, 35, 35), 44, (3, 3), stride=2),
    "conv_dilated": partial(convolution, (1, 57, 33, 33), 48, (3, 3), dilation=2),
    "conv_grouped": partial(convolution, (1, 48, 27, 27), 96, (3, 3), groups=4),
    "conv_rows": partial(convolution, (1, 3, 65, 65), 24, (4, 4), stride=2),
    "conv_pointwise": partial(convolution, (4, 83, 15, 15), 131, (1, 1)),
    "conv_batch": partial(convolution, ("batch", 32, 14, 14), 64, (3, 3)),
    "conv_picture": partial(convolution, (1, 32, "height", "width"), 32, (3, 3)),
    "depthwise_7x7": partial(convolution, (1, 96, 28, 28), 96, (7, 7), groups=96),
    "depthwise_odd": partial(convolution, (2, 37, 23, 45), 37, (5, 5), groups=37, stride=2),
    "depthwise_row": partial(convolution, (1, 70, 33, 33), 70, (1, 5), groups=70),
    "transposed_odd": lambda: of("ConvTranspose", [(1, 30, 13, 13)], [(30, 19, 3, 3)], strides=[2, 2], pads=[1] * 4),
    "transposed_grouped": lambda: of("ConvTranspose", [(1, 32, 9, 9)], [(32, 8, 2, 2)], strides=[2, 2], group=2),
    "matmul_256": lambda: of("MatMul", [(256, 256)], [(256, 256)]),
    "matmul_1024": lambda: of("MatMul", [(1024, 1024)], [(1024, 1024)]),
    "matmul_odd": lambda: of("MatMul", [(77, 301)], [(301, 133)]),
    "matmul_row": lambda: of("MatMul", [(1, 1280)], [(1280, 1000)]),
    "matmul_rows": lambda: of("MatMul", [("rows", 768)], [(768, 768)]),
    "matmul_column": lambda: of("MatMul", [(900, 333)], [(333, 1)]),
    "matmul_deep": lambda: of("MatMul", [(14, 9000)], [(9000, 30)]),
    "matmul_dynamic": lambda: of("MatMul", [(128, 512), (512, 512)]),
    "matmul_dynamic_odd": lambda: of("MatMul", [(65, 130), (130, 9)]),
    "matmul_batched": lambda: of("MatMul", [(12, 128, 64), (12, 64, 128)]),
    "matmul_broadcast": lambda: of("MatMul", [(5, 33, 47)], [(47, 95)]),
    "gemm_transposed": lambda: of("Gemm", [(50, 211)], [(170, 211), (170,)], transB=1),
    "matmul_bytes": partial(quantized, 64, 256, 256),
    "matmul_halves": lambda: of("MatMul", [(64, 96), (96, 80)], dtype=TensorProto.FLOAT16),
    "softmax_rows": lambda: of("Softmax", [(1536, 128)], axis=-1),
    "softmax_tail": lambda: of("Softmax", [(37, 1001)], axis=-1),
    "softmax_middle": lambda: of("Softmax", [(6, 80, 35)], axis=1),
    "layer_norm": lambda: of("LayerNormalization", [(197, 192)], [(192,), (192,)], axis=-1),
    "layer_norm_odd": lambda: of("LayerNormalization", [(31, 7, 45)], [(7, 45), (7, 45)], axis=-2),
    "instance_norm": lambda: of("InstanceNormalization", [(2, 12, 33, 31)], [(12,), (12,)]),
    "sum_last": partial(reduced, "ReduceSum", (1000, 333), [1]),
    "sum_first": partial(reduced, "ReduceSum", (172, 26, 224), [0]),
    "sum_all": partial(reduced, "ReduceSum", (300, 301), [0, 1]),
    "mean_inner": partial(reduced, "ReduceMean", (8, 65, 7, 7), [2, 3]),
    "max_middle": partial(reduced, "ReduceMax", (29, 150, 41), [1]),
    "norm_first": partial(reduced, "ReduceL2", (482, 10, 101), [0]),
    "argmax": lambda: of("ArgMax", [(64, 1000)], axis=-1, keepdims=0),
    "max_pool": lambda: of("MaxPool", [(1, 45, 57, 57)], kernel_shape=[3, 3], strides=[2, 2], pads=[1] * 4),
    "average_pool": lambda: of("AveragePool", [(1, 20, 35, 35)], kernel_shape=[5, 5], strides=[1, 1]),
    "transpose_inner": lambda: of("Transpose", [(8, 129, 65)], perm=[0, 2, 1]),
    "transpose_images": lambda: of("Transpose", [(1, 30, 30, 21)], perm=[0, 3, 1, 2]),
    "exp": lambda: of("Exp", [(7, 1237)]),
    "tanh": lambda: of("Tanh", [(3, 50, 50)]),
    "erf_halves": lambda: of("Erf", [(2049,)], dtype=TensorProto.FLOAT16),
    "sin": lambda: of("Sin", [(1025,)]),
    "power": lambda: of("Pow", [(40, 50), (50,)]),
    "broadcast": lambda: of("Mul", [(12, 1, 45), (31, 1)]),
    "cumulative_sum": partial(summed, (20, 300), 1),
    "gather_rows": partial(gathered, (1000, 96), 33),
    "resize_linear": partial(resized, (1, 16, 25, 25), 2.0, "linear"),
    "resize_nearest": partial(resized, (1, 16, 13, 13), 2.0, "nearest"),
}


OPERATORS: Final = {**_paper(), **ODD}
