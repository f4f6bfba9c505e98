"""Products of quantised matrices and images in ONNX Runtime's own operators."""

from __future__ import annotations

from weft.frontends.onnx.call import Call, Operand, Results
from weft.frontends.onnx.contrib import CONVOLUTION, contrib
from weft.frontends.onnx.ops.microsoft.quantized_functions import one_number
from weft.frontends.onnx.ops.quantization import NO_SMALL_TYPES, dequantize_linear, qlinear_convolved, quantize_linear
from weft.graph.composites.channel_order import channels_first, channels_last
from weft.graph.composites.quantized.quantization import column, integer_matmul, requantize
from weft.graph.composites.quantized.quantized_arithmetic import dynamically_quantized
from weft.support.dtypes import f32, i32, u8


@contrib("QuantizeLinear", inputs=(2, 3), attributes={"axis": int}, limits=NO_SMALL_TYPES)
def quantize(c: Call) -> Results:
    """ONNX's, before that had 16-bit integers."""
    return quantize_linear(c)


@contrib("DequantizeLinear", inputs=(2, 3), attributes={"axis": int}, limits=NO_SMALL_TYPES)
def dequantize(c: Call) -> Results:
    """ONNX's, before that had 16-bit integers."""
    return dequantize_linear(c)


@contrib(
    "QLinearConv",
    inputs=(8, 9),
    attributes={**CONVOLUTION, "channels_last": int},
    limits=NO_SMALL_TYPES,
)
def qlinear_conv(c: Call) -> Results:
    """The convolution of quantised images, quantised; the channels come last where the attribute says so."""
    x = c.input(0)
    if not c.flag("channels_last", False):
        return qlinear_convolved(c, x)
    return channels_last(c, qlinear_convolved(c, channels_first(c, x)))


@contrib("QGemm", inputs=(6, 9), attributes={"alpha": float, "transA": int, "transB": int}, limits=NO_SMALL_TYPES)
def qgemm(c: Call) -> Results:
    """alpha * (A B + C) of quantised matrices, C in steps of A B; as floats where the result has no scale."""
    a, b = c.ranked(0, 2, "A"), c.ranked(3, 2, "B")
    a = c.transpose(a, [1, 0]) if c.flag("transA", False) else a
    b = c.transpose(b, [1, 0]) if c.flag("transB", False) else b
    sums = integer_matmul(c, a, b, one_number(c, 2), c.input(5))
    sums = sums if not c.has(6) else c.add("add", sums, c.cast(c.input(6), i32))
    step = c.add("mul", c.add("mul", c.scalar(c.number("alpha", 1.0), f32), c.input(1)), c.input(4))
    scale = one_number(c, 7)
    if scale is None:
        return c.add("mul", c.cast(sums, f32), step)
    zero = one_number(c, 8)
    scaled = c.add("mul", c.cast(sums, f32), c.add("div", step, scale))
    return requantize(c, scaled, zero, a.dtype if zero is None else zero.dtype)


@contrib("MatMulIntegerToFloat", inputs=(4, 7), limits=NO_SMALL_TYPES)
def matmul_integer_to_float(c: Call) -> Results:
    """The product of quantised matrices as floats, plus a bias."""
    sums = integer_matmul(c, c.input(0), c.input(1), c.optional(4), c.optional(5))
    return _as_floats(c, sums, c.add("mul", column(c, c.input(2)), c.input(3)), c.optional(6))


@contrib("DynamicQuantizeMatMul", inputs=(3, 5), limits=NO_SMALL_TYPES)
def dynamic_quantize_matmul(c: Call) -> Results:
    """The product of floats, quantised by the range that they have, and a quantised matrix, plus a bias."""
    a = dynamically_quantized(c, c.input(0), u8)
    sums = integer_matmul(c, a.q, c.input(1), a.zero, c.optional(3))
    return _as_floats(c, sums, c.add("mul", a.scale, c.input(2)), c.optional(4))


def _as_floats(c: Call, sums: Operand, scale: Operand, bias: Operand | None) -> Operand:
    """Returns 32-bit *sums* times *scale*, plus *bias*."""
    scaled = c.add("mul", c.cast(sums, f32), scale)
    return scaled if bias is None else c.add("add", scaled, bias)
