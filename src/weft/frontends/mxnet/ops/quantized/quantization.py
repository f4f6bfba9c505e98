"""Quantisation: floats to bytes and back, and sums in 32 bits to bytes; `quantized_ranges` has their scales."""

from __future__ import annotations

from weft.frontends.mxnet.call import Call
from weft.frontends.mxnet.quantized_ranges import (
    BYTES,
    REACH,
    WHOLE_REACH,
    Range,
    around_zero,
    calibrated,
    chosen_type,
    in_steps,
    measured,
    range_at,
)
from weft.frontends.mxnet.registry import translates
from weft.graph.builder import Operand
from weft.graph.composites.quantized.quantization import dequantize as dequantized
from weft.graph.composites.quantized.quantization import saturate_to
from weft.support.dtypes import f32, i8, i32, u8

Quantized = tuple[Operand, Operand, Operand]


@translates("_contrib_quantize_v2")
def quantize_v2(c: Call) -> Quantized:
    """Floats as bytes, by a range that is given, or their own; bytes stay what they are."""
    x, found = c.input(), calibrated(c)
    if x.dtype in REACH:
        end = c.scalar(REACH[x.dtype], f32)
        start = c.scalar(0, f32) if x.dtype is u8 else c.add("neg", end)
        return (found or Range(start, end)).results(c, x)
    dtype, by = chosen_type(c, found), found or measured(c, x)
    size = by.size(c)
    q = in_steps(c, x, c.add("div", c.scalar(REACH[dtype], f32), size), dtype)
    return (by if dtype is u8 else around_zero(c, size)).results(c, q)


@translates("_contrib_quantize")
def quantize(c: Call) -> Quantized:
    """Floats as bytes, by the range that other inputs are."""
    by, name = range_at(c, 1), c.text("out_type", "uint8")
    if name not in BYTES:
        c.wrong("out_type", "int8 or uint8")
    dtype, size = BYTES[name], by.size(c)
    q = in_steps(c, c.input(), c.add("div", c.scalar(WHOLE_REACH[dtype], f32), size), dtype)
    return (by if dtype is u8 else around_zero(c, size)).results(c, q)


@translates("_contrib_quantize_asym")
def quantize_asym(c: Call) -> Quantized:
    """Floats as unsigned bytes, times a scale and moved by a shift, both of which are results; zero need not be a byte."""
    x, most = c.input(), c.scalar(WHOLE_REACH[u8], f32)
    if x.dtype in (u8, i8):
        by = Range(c.scalar(1, f32), c.scalar(128 if x.dtype is i8 else 0, f32))
        return by.results(c, saturate_to(c, c.add("add", c.cast(x, f32), by.high), u8))
    by = calibrated(c) or measured(c, x)
    scale = c.add("div", most, c.add("sub", by.high, by.low))
    shift = c.add("sub", most, c.add("mul", by.high, scale))
    moved = c.add("add", c.add("mul", x, scale), shift)
    return Range(scale, shift).results(c, saturate_to(c, c.add("round", moved), u8))


@translates("_contrib_dequantize")
def dequantize(c: Call) -> Operand:
    """Bytes as floats."""
    x = c.input()
    if x.dtype not in REACH:
        c.fail(f"its input should be quantised: {x!r}", "save the network again")
    scale = c.add("div", range_at(c, 1).size(c), c.scalar(REACH[x.dtype], f32))
    return dequantized(c, x, scale, None, f32)


@translates("_contrib_requantize")
def requantize(c: Call) -> Quantized:
    """Sums in 32 bits as bytes, by a range that is given, or their own."""
    x, before, found = c.input(), range_at(c, 1), calibrated(c)
    dtype, every = chosen_type(c, found), c.scalar(WHOLE_REACH[i32], f32)
    size = before.size(c) if found is None else found.size(c)
    if found is None:
        size = c.add("div", c.add("mul", measured(c, x).size(c), size), every)
    was = c.add("div", before.size(c), every)
    steps = c.add("mul", was, c.add("div", c.scalar(WHOLE_REACH[dtype], f32), size))
    after = Range(c.scalar(0, f32), size) if dtype is u8 else around_zero(c, size)
    return after.results(c, in_steps(c, x, steps, dtype))
