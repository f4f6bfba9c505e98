"""Layers whose inputs and results are quantised: each has behind its inputs the range of each, and gives the range of its result.

Sums are exact in 32 bits; `quantized_ranges` has the scales of the integers.
"""

from __future__ import annotations

from dataclasses import replace

from weft.frontends.mxnet.call import Call
from weft.frontends.mxnet.ops.elementwise import combined
from weft.frontends.mxnet.ops.functions_and_logic import away_from_zero, towards_zero
from weft.frontends.mxnet.ops.layers import as_rows, convolution, pooling
from weft.frontends.mxnet.ops.quantized.quantization import Quantized
from weft.frontends.mxnet.quantized_ranges import (
    REACH,
    WHOLE_REACH,
    Range,
    around_zero,
    calibrated,
    in_steps,
    product_reaches,
    range_at,
    range_of_products,
)
from weft.frontends.mxnet.registry import result_of, translates
from weft.graph.builder import Operand, total
from weft.graph.composites.quantized.quantization import centred, integer_matmul, requantize
from weft.graph.composites.sequences import concat
from weft.support.dtypes import f32, f64, i8, i32, u8


def _kinds(c: Call) -> int:
    """Returns how many inputs a layer has whose third is a bias; the ranges of them all come behind."""
    return 2 if c.flag("no_bias") else 3


@translates("_contrib_quantized_conv")
def quantized_conv(c: Call) -> Quantized:
    """A convolution. A bias is added to unsigned images as it is, which oneDNN does; to signed ones in steps of the sums."""
    x, w, n = c.input(0), c.input(1), _kinds(c)
    images, weights = range_at(c, n), range_at(c, n + 2)
    made = range_of_products(c, images, weights, product_reaches(i8))
    bias = None if n == 2 else c.cast(c.input(2), i32)
    if bias is not None and x.dtype is i8:
        level = c.add("div", made.size(c), c.scalar(WHOLE_REACH[i32], f32))
        of_bias = c.add("div", range_at(c, n + 4).size(c), c.scalar(WHOLE_REACH[i8], f32))
        bias = c.cast(towards_zero(c, c.add("div", c.add("mul", c.cast(bias, f32), of_bias), level)), i32)
    return made.results(c, convolved_bytes(c, x, w, bias))


def convolved_bytes(c: Call, x: Operand, w: Operand, bias: Operand | None) -> Operand:
    """Returns the convolution of bytes as the attributes of *c* say, in 32 bits."""
    attributes = {**c.node.attributes, "no_bias": str(bias is None)}
    inputs = [centred(c, x, None), centred(c, w, None), bias]
    return result_of(convolution(c.on(replace(c.node, op="Convolution", attributes=attributes), inputs)))


@translates("_contrib_quantized_fully_connected")
def quantized_fully_connected(c: Call) -> Quantized:
    """Rows times the transpose of a matrix, and a bias in steps of the sums."""
    x, w, n = c.input(0), c.input(1, rank=2), _kinds(c)
    rows, weights = range_at(c, n), range_at(c, n + 2)
    bias: Operand | None = None
    if n == 3:
        of_bias = range_at(c, n + 4).size(c)
        of_weights = c.add("div", c.scalar(REACH[i8], f32), weights.size(c))
        of_rows = c.add("div", c.scalar(REACH[x.dtype], f32), rows.size(c))
        steps = c.add("div", c.add("mul", c.add("mul", of_rows, of_weights), of_bias), c.scalar(REACH[i8], f32))
        bias = c.cast(towards_zero(c, c.add("mul", c.cast(c.input(2), f32), steps)), i32)
    made = range_of_products(c, rows, weights, product_reaches(x.dtype))
    return made.results(c, multiplied_bytes(c, x, w, bias))


def multiplied_bytes(c: Call, x: Operand, w: Operand, bias: Operand | None) -> Operand:
    """Returns rows of bytes times the transpose of *w*, in 32 bits."""
    sums = integer_matmul(c, as_rows(c, x), c.transpose(w, [1, 0]), None, None)
    return sums if bias is None else c.add("add", sums, bias)


def rounded_bias(c: Call, bias: Operand, steps: Operand) -> Operand:
    """Returns a bias times *steps* in 32 bits, halves away from zero."""
    return c.cast(away_from_zero(c, c.add("mul", c.cast(bias, f32), steps)), i32)


@translates("_contrib_quantized_pooling")
def quantized_pooling(c: Call) -> Quantized:
    """The largest byte of windows, or their mean, rounded."""
    x, inner = c.input(), replace(c.node, op="Pooling")
    if c.text("pool_type", "max") == "max":
        return range_at(c, 1).results(c, result_of(pooling(c.on(inner, [x]))))
    means = result_of(pooling(c.on(inner, [c.cast(x, f32)])))
    return range_at(c, 1).results(c, requantize(c, means, None, x.dtype))


@translates("_contrib_quantized_act")
def quantized_act(c: Call) -> Quantized:
    """Bytes, of which those below zero are zero."""
    if c.text("act_type") != "relu":
        c.fail(f"its act_type {c.text('act_type')!r} is not supported", "use relu")
    x = c.input()
    return range_at(c, 1).results(c, c.add("maximum", x, c.scalar(0, x.dtype)))


@translates("_contrib_quantized_flatten")
def quantized_flatten(c: Call) -> Quantized:
    """All but the first dimension as one."""
    x = c.input()
    return range_at(c, 1).results(c, c.reshape(x, [x.shape[0], total(x.shape[1:])]))


@translates("_contrib_quantized_embedding")
def quantized_embedding(c: Call) -> Quantized:
    """The rows of a matrix of bytes that indices name."""
    rows = c.add("gather", c.kept(c.input(1)), c.cast(c.input(0), i32), axis=0)
    return range_at(c, 2).results(c, rows)


@translates("_contrib_quantized_concat")
def quantized_concat(c: Call) -> Quantized:
    """Joined along a dimension, all in the steps of the largest range."""
    n = c.integer("num_args")
    parts, ranges = [c.input(k) for k in range(n)], [range_at(c, n + 2 * k) for k in range(n)]
    dtype = i8 if any(p.dtype is i8 for p in parts) else u8
    made = Range(c.scalar(0, f32), c.scalar(0, f32))
    for r in ranges:
        made = Range(c.add("minimum", made.low, r.low), c.add("maximum", made.high, r.high))
    steps = c.add("div", c.scalar(REACH[dtype], f32), made.size(c))
    scaled: list[Operand] = []
    for part, r in zip(parts, ranges, strict=True):
        before = c.add("div", c.scalar(REACH[part.dtype], f32), r.size(c))
        scaled.append(in_steps(c, part, c.add("div", steps, before), dtype))
    return made.results(c, concat(c, scaled, c.axis_of(c.integer("dim", 1), parts[0].rank)))


@translates("_contrib_quantized_elemwise_add")
def quantized_add(c: Call) -> Quantized:
    """The sum of two tensors of bytes: bytes in a range that was calibrated, or in 32 bits."""
    parts, ranges, found = [c.input(k) for k in range(2)], [range_at(c, 2), range_at(c, 4)], calibrated(c)
    sizes = [r.size(c) for r in ranges]
    same = parts[0].dtype is parts[1].dtype
    if found is not None:
        dtype = parts[0].dtype if same else i8
        steps = c.add("div", c.scalar(REACH[dtype], f32), found.size(c))
        befores = [c.add("div", c.scalar(REACH[p.dtype], f32), size) for p, size in zip(parts, sizes, strict=True)]
        scales = [c.add("div", steps, before) for before in befores]
    else:
        dtype = i32
        found = around_zero(c, c.add("add", *sizes))
        scales = [
            c.add(
                "div",
                c.add("mul", size, c.scalar(REACH[i32], f32)),
                c.add("mul", found.high, c.scalar(REACH[p.dtype], f32)),
            )
            for p, size in zip(parts, sizes, strict=True)
        ]
    floats = [_rescaled(c, p, s, is_whole=not same and p.dtype is u8) for p, s in zip(parts, scales, strict=True)]
    return found.results(c, requantize(c, c.add("add", *floats), None, dtype))


def _rescaled(c: Call, x: Operand, scale: Operand, *, is_whole: bool) -> Operand:
    """Returns bytes times *scale* as floats; *is_whole* for those that are rounded to signed ones first."""
    return c.cast(in_steps(c, x, scale, i8), f32) if is_whole else c.add("mul", c.cast(x, f32), scale)


@translates("_contrib_quantized_elemwise_mul")
def quantized_mul(c: Call) -> Quantized | Operand:
    """The product of two tensors of signed bytes: floats, bytes in a range that was calibrated, or in 32 bits."""
    ranges, found = [range_at(c, 2), range_at(c, 4)], calibrated(c)
    product = combined(c, "mul", *(c.cast(c.input(k), i32) for k in range(2)))
    befores = [c.add("div", c.scalar(REACH[i8], f32), r.size(c)) for r in ranges]
    is_float = c.flag("enable_float_output")
    if found is None and not is_float:
        return range_of_products(c, ranges[0], ranges[1], product_reaches(i8)).results(c, product)
    steps = c.scalar(1, f32) if is_float or found is None else c.add("div", c.scalar(REACH[i8], f32), found.size(c))
    scale = c.add("div", c.add("div", steps, befores[0]), befores[1])
    scaled = c.add("mul", c.cast(product, f32), scale)
    if is_float or found is None:
        return scaled
    return found.results(c, c.cast(towards_zero(c, scaled), i8))


@translates("_contrib_quantized_batch_norm")
def quantized_batch_norm(c: Call) -> Quantized:
    """Channels scaled and moved as by their mean and variance, in a range that was calibrated; the scale is never fixed."""
    x, scale, bias, mean, variance = (c.input(k) for k in range(5))
    found, before = calibrated(c), range_at(c, 5).size(c)
    if found is None:
        c.fail("it has no range that was calibrated", "quantise the network with calib_mode='naive' or 'entropy'")
    if x.dtype is u8:
        x = in_steps(c, x, c.scalar(REACH[i8] / REACH[u8], f32), i8)
    epsilon = c.number("eps", 1e-3)
    inverse = inverse_root(c, variance, epsilon)
    after = found.size(c)
    by = c.add("div", c.add("mul", c.add("mul", scale, inverse), before), after)
    moved = c.add("sub", bias, c.add("mul", c.add("mul", mean, scale), inverse))
    plus = c.add("div", c.add("mul", moved, c.scalar(REACH[i8], f32)), after)
    by = c.add("mul", by, c.scalar((1 + epsilon) ** -0.5, f32))
    axis = c.axis_of(c.integer("axis", 1), x.rank)
    by, plus = (c.reshape(v, [x.shape[axis], *[1] * (x.rank - axis - 1)]) for v in (by, plus))
    scaled = c.add("add", c.add("mul", c.cast(x, f32), by), plus)
    return found.results(c, requantize(c, scaled, None, i8))


def inverse_root(c: Call, variance: Operand, epsilon: float) -> Operand:
    """Returns one over the root of *variance* plus *epsilon*, rounded to float32 once."""
    wide = c.add("sqrt", c.add("add", c.cast(variance, f64), c.scalar(epsilon, f64)))
    return c.cast(c.add("div", c.scalar(1, f64), wide), f32)
