"""Quantized tensors, as programs of PyTorch's quantization have them, and floats that are rounded as if they were quantized.

Names of `quantized_decomposed` are those of the operators that `torch.export` and PT2E quantization make.
"""

from __future__ import annotations

from typing import Final

from weft.frontends.torch.call import Call
from weft.frontends.torch.registry import translates
from weft.graph.builder import Operand, Results
from weft.graph.composites.quantized import quantization as composites
from weft.support.dtypes import f32, f64, i64

_DECOMPOSED: Final = "quantized_decomposed."


@translates(*(f"{_DECOMPOSED}quantize_per_tensor.{kind}" for kind in ("default", "tensor", "tensor2")))
def quantize_per_tensor(c: Call) -> Results:
    """Multiplies by the inverse of a scale, rounds to even, adds a zero point, and saturates to a range of an integer type."""
    return _quantized(c, *[c.reshape(p, []) for p in (_inverse(c, "scale"), c.operand("zero_point", i64))])


@translates(f"{_DECOMPOSED}quantize_per_channel.default")
def quantize_per_channel(c: Call) -> Results:
    """The same, with a scale and a zero point for each index of an axis."""
    x = c.tensor("input")
    return _quantized(c, _along(c, _inverse(c, "scales"), x), _along(c, c.tensor("zero_points"), x))


@translates(*(f"{_DECOMPOSED}dequantize_per_tensor.{kind}" for kind in ("default", "tensor", "tensor2")))
def dequantize_per_tensor(c: Call) -> Results:
    """Subtracts a zero point and multiplies by a scale."""
    scale, zero = c.reshape(c.operand("scale", f32), []), c.reshape(c.operand("zero_point", i64), [])
    return composites.dequantize(c, c.tensor("input"), scale, zero, c.dtype)


@translates(f"{_DECOMPOSED}dequantize_per_channel.default")
def dequantize_per_channel(c: Call) -> Results:
    """The same, with a scale and a zero point for each index of an axis."""
    x, zeros = c.tensor("input"), c.optional("zero_points")
    zeros = None if zeros is None else _along(c, zeros, x)
    return composites.dequantize(c, x, _along(c, c.tensor("scales"), x), zeros, c.dtype)


@translates(f"{_DECOMPOSED}choose_qparams.tensor")
def choose_parameters(c: Call) -> Results:
    """The scale, at least *eps*, and the zero point by which a range of integers covers all elements, and 0."""
    x, low, high = c.cast(c.tensor("input"), f32), c.integer("quant_min"), c.integer("quant_max")
    axes, zero = tuple(range(x.rank)), c.scalar(0, f32)
    least = c.add("minimum", c.add("reduce_min", x, axes=axes, keepdims=False), zero)
    most = c.add("maximum", c.add("reduce_max", x, axes=axes, keepdims=False), zero)
    share = c.add("div", c.add("sub", most, least), c.scalar(high - low, f32))
    scale = c.add("maximum", share, c.scalar(c.value("eps"), f32))
    point = c.add("sub", c.scalar(low, i64), c.cast(c.add("round", c.add("div", least, scale)), i64))
    point = c.add("clip", point, c.scalar(low, i64), c.scalar(high, i64))
    return c.reshape(c.cast(scale, f64), [1]), c.reshape(point, [1])


@translates("_int_mm")
def int_mm(c: Call) -> Results:
    """The product of matrices of bytes, in 32 bits."""
    return composites.integer_matmul(c, c.tensor(), c.tensor("mat2"), None, None)


@translates("_weight_int8pack_mm")
def weight_int8pack_mm(c: Call) -> Results:
    """The product with the transpose of a matrix of bytes, whose rows have a scale each."""
    x, weight = c.tensor(), composites.centred(c, c.tensor("mat2"), None)
    made = c.add("matmul", x, c.transpose(c.cast(weight, x.dtype), [1, 0]))
    return c.add("mul", made, c.cast(c.tensor("scales"), x.dtype))


@translates("fake_quantize_per_tensor_affine_cachemask")
def fake_quantize(c: Call) -> Results:
    """The floats that are left of a tensor when it is quantized and dequantized, and where nothing was saturated."""
    return _rounded(c, c.operand("scale", f32), c.operand("zero_point", f32))


@translates("_fake_quantize_per_tensor_affine_cachemask_tensor_qparams")
def fake_quantize_by_tensors(c: Call) -> Results:
    """The same with parameters that are tensors, if another tensor is 1; else the tensor as it is."""
    scale, zero = (c.reshape(c.operand(name, f32), []) for name in ("scale", "zero_point"))
    made, mask = _rounded(c, scale, zero)
    enabled = c.reshape(c.tensor("fake_quant_enabled"), [])
    is_off = c.add("equal", enabled, c.scalar(0, enabled.dtype))
    return c.add("where", is_off, c.tensor(), made), c.add("logical_or", mask, is_off)


@translates("fake_quantize_per_channel_affine_cachemask")
def fake_quantize_per_channel(c: Call) -> Results:
    """The same, with a scale and a zero point for each index of an axis."""
    x = c.tensor()
    scale, zero = (_along(c, c.cast(c.tensor(name), f32), x) for name in ("scale", "zero_point"))
    return _rounded(c, scale, zero)


def _inverse(c: Call, name: str) -> Operand:
    """Returns the inverses of scales, which may be a number, a tensor of double precision, or one of single precision."""
    scale = c.optional(name)
    if scale is None:
        return c.scalar(1 / float(c.value(name)), f32)
    return c.cast(c.add("div", c.scalar(1, scale.dtype), scale), f32)


def _along(c: Call, v: Operand, x: Operand) -> Operand:
    """Returns a vector along the axis of *x* that the arguments say."""
    return composites.broadcast_to_blocks(c, v, x, c.axis("axis", x.rank))


def _quantized(c: Call, inverse: Operand, zero: Operand) -> Operand:
    scaled = c.add("mul", c.cast(c.tensor("input"), f32), inverse)
    made = composites.requantize(c, scaled, zero, c.dtype)
    low, high = (c.integer(name) for name in ("quant_min", "quant_max"))
    if (low, high) == c.dtype.int_range:
        return made
    return c.add("clip", made, c.scalar(low, c.dtype), c.scalar(high, c.dtype))


def _rounded(c: Call, scale: Operand, zero: Operand) -> tuple[Operand, Operand]:
    x = c.tensor()
    low, high = (c.scalar(c.integer(name), f32) for name in ("quant_min", "quant_max"))
    inverse = c.add("div", c.scalar(1, f32), scale)
    steps = c.add("add", c.add("round", c.add("mul", c.cast(x, f32), inverse)), zero)
    kept = c.add("clip", steps, low, high)
    made = c.cast(c.add("mul", c.add("sub", kept, zero), scale), x.dtype)
    return made, c.add("equal", kept, steps)
