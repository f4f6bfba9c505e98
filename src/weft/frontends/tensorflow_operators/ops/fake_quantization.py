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
