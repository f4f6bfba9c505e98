"""Floats rounded to those that integers of few bits stand for, as networks that are trained for quantisation have them."""

from __future__ import annotations

import numpy as np

from weft.frontends.tensorflow_operators.call import SAVE_AGAIN, Call
from weft.frontends.tensorflow_operators.registry import translates
from weft.graph import Array
from weft.graph.builder import CompileTimeConstant, Operand
from weft.support.dtypes import f32


@translates("FakeQuantWithMinMaxArgs")
def of_attributes(c: Call) -> Operand:
    """With the range that attributes give."""
    low, high = c.number("min", -6.0), c.number("max", 6.0)
    return _rounded(c, np.array([low], np.float32), np.array([high], np.float32))


@translates("FakeQuantWithMinMaxVars", "FakeQuantWithMinMaxVarsPerChannel")
def of_tensors(c: Call) -> Operand:
    """With a range that was learnt, or one for each of the last dimension's channels."""
    low, high = (np.asarray(c.numbers(k, "the range"), np.float32).reshape(-1) for k in (1, 2))
    if low.shape != high.shape:
        c.fail(f"its range has {low.size} and {high.size} numbers", SAVE_AGAIN)
    return _rounded(c, low, high)


def _rounded(c: Call, low: Array, high: Array) -> Operand:
    """Returns the nearest of the numbers between *low* and *high* in equal steps, of which one is zero (Jacob et al., 2018)."""
    bits, least = c.integer("num_bits", 8), int(c.flag("narrow_range"))
    if not 2 <= bits <= 16 or not (low < high).all():
        c.fail(f"its range, in {bits} bits, is empty", SAVE_AGAIN)
    most = 2**bits - 1
    step = (high - low) / np.float32(most - least)
    zero = np.clip(np.floor(least - low / step + np.float32(0.5)), least, most).astype(np.float32)
    first, last = (least - zero) * step, (most - zero) * step
    begin, end, by = (CompileTimeConstant(v.astype(np.float32)) for v in (first, last, step))
    inside = c.add("sub", c.add("minimum", c.add("maximum", c.tensor(0), begin), end), begin)
    whole = c.add("floor", c.add("add", c.add("div", inside, by), c.scalar(0.5, f32)))
    return c.add("add", c.add("mul", whole, by), begin)


@translates("QuantizeAndDequantizeV2", "QuantizeAndDequantizeV3", "QuantizeAndDequantizeV4")
def quantized_and_back(c: Call) -> Operand:
    """The nearest of the numbers that integers of some bits, signed or not, stand for by one scale."""
    if c.integer("axis", -1) != -1 or not c.flag("range_given"):
        c.fail("ranges of each channel, and such as a run finds, are not supported", "save the model with one range")
    low, high = (float(c.number_at(k, "the range")) for k in (1, 2))
    bits = int(c.number_at(3, "the number of bits")) if c.op.endswith("V3") else c.integer("num_bits", 8)
    signed, narrow = c.flag("signed_input", True), c.flag("narrow_range")
    if not 2 <= bits <= 16 or low > high:
        c.fail(f"its range, in {bits} bits, is {low} to {high}", SAVE_AGAIN)
    least, most = (narrow - 2 ** (bits - 1), 2 ** (bits - 1) - 1) if signed else (0, 2**bits - 1)
    scales = [n / v for n, v in ((least, low), (most, high)) if n * v > 0]
    scale = np.float32(min(scales, default=1.0))
    ends = (float(least / scale) if signed else low, float(most / scale))
    inside = c.add("clip", c.tensor(0), *[c.scalar(end, f32) for end in ends])
    whole = c.add("mul", inside, c.scalar(float(scale), f32))
    if c.text("round_mode", "HALF_TO_EVEN") == "HALF_TO_EVEN":
        whole = c.add("round", whole)
    else:
        whole = c.add("floor", c.add("add", whole, c.scalar(0.5, f32)))
    return c.add("mul", whole, c.scalar(float(np.float32(1) / scale), f32))
