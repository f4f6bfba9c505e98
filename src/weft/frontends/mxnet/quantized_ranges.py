"""Quantised tensors of MXNet: integers, and two numbers beside them, the range that they were quantised from.

An integer q stands for `q / steps`, of which the *steps* in a unit are a number near the largest of the type, over the larger end
of the range. There are several such numbers: see `Reach`. All of it is float32, and in the order of MXNet's kernels for x86-64
with oneDNN, so that the roundings are theirs.
"""

from __future__ import annotations

from typing import Final, NamedTuple

from weft.frontends.mxnet.call import Call
from weft.graph.builder import Operand
from weft.graph.builder.builder import Builder
from weft.graph.composites.quantized.quantization import requantize
from weft.support.dtypes import DType, f32, i8, i32, u8

BYTES: Final = {"int8": i8, "uint8": u8}
REACH: Final = {i8: 127.5, u8: 255.5, i32: float(2**31 - 1)}
"""The integer that the larger end of a range is in most of MXNet's operators: half a step beyond the largest byte."""

WHOLE_REACH: Final = {i8: 127.0, u8: 255.0, i32: float(2**31 - 1)}
"""The same in the operators that are older: the largest integer."""

STEPS_OF_NOTHING: Final = float(2**31 - 1)


class Range(NamedTuple):
    """The least and the largest number of a tensor, scalars of float32."""

    low: Operand
    high: Operand

    def size(self, b: Builder) -> Operand:
        """Returns the larger distance of both from zero."""
        return b.add("maximum", b.add("abs", self.low), b.add("abs", self.high))

    def steps(self, b: Builder, dtype: DType) -> Operand:
        """Returns how many steps of integers of *dtype* a unit has; a large number for an empty range."""
        size = self.size(b)
        steps = b.add("div", b.scalar(REACH[dtype], f32), b.add("maximum", size, b.scalar(1e-37, f32)))
        nothing = b.add("equal", size, b.scalar(0, f32))
        return b.add("where", nothing, b.scalar(STEPS_OF_NOTHING, f32), steps)

    def results(self, b: Builder, q: Operand) -> tuple[Operand, Operand, Operand]:
        """Returns the results of an operator that gives *q* in this range."""
        return q, b.reshape(self.low, [1]), b.reshape(self.high, [1])


def range_at(c: Call, first: int) -> Range:
    """Returns the range that inputs *first* and the next one are."""
    low, high = (c.reshape(c.cast(c.input(k), f32), []) for k in (first, first + 1))
    return Range(low, high)


def calibrated(c: Call) -> Range | None:
    """Returns the range of the results that was found by calibration; None where there is none."""
    if c.text("min_calib_range", "None") == "None" or c.text("max_calib_range", "None") == "None":
        return None
    low, high = (c.scalar(c.number(f"{end}_calib_range"), f32) for end in ("min", "max"))
    return Range(low, high)


def measured(b: Builder, x: Operand) -> Range:
    """Returns the range of the elements of *x*, as float32."""
    low, high = (b.cast(b.add(f"reduce_{end}", x, keepdims=False), f32) for end in ("min", "max"))
    return Range(low, high)


def around_zero(b: Builder, size: Operand) -> Range:
    """Returns the range from -*size* to *size*."""
    return Range(b.add("neg", size), size)


def chosen_type(c: Call, found: Range | None) -> DType:
    """Returns the type of bytes that `out_type` names; for `auto` it is unsigned where calibration found nothing below zero."""
    name = c.text("out_type", "int8")
    if name == "auto":
        return u8 if found is not None and c.number("min_calib_range") >= 0 else i8
    if name not in BYTES:
        c.wrong("out_type", "int8, uint8 or auto")
    return BYTES[name]


def in_steps(b: Builder, x: Operand, steps: Operand, dtype: DType) -> Operand:
    """Returns numbers times *steps*, rounded to even and saturated to integers of *dtype*."""
    return requantize(b, b.add("mul", b.cast(x, f32), steps), None, dtype)


def range_of_products(b: Builder, x: Range, w: Range, reaches: tuple[float, float]) -> Range:
    """Returns the range of sums, in 32 bits, of products of integers, whose larger ends are at *reaches*."""
    levels = [b.add("div", r.size(b), b.scalar(reach, f32)) for r, reach in zip((x, w), reaches, strict=True)]
    level = b.add("mul", *levels)
    return around_zero(b, b.add("mul", level, b.scalar(WHOLE_REACH[i32], f32)))


def product_reaches(x: DType) -> tuple[float, float]:
    """Returns the larger ends that products of bytes *x* and of signed ones are taken to have."""
    return (WHOLE_REACH[i8], WHOLE_REACH[u8] if x is u8 else WHOLE_REACH[i8])
