"""The parts of floats, by arithmetic on their bits, and the floats next to others."""

from __future__ import annotations

from typing import Final, NamedTuple

import ml_dtypes

from weft.frontends.torch.call import Call
from weft.frontends.torch.registry import translates
from weft.graph.builder import Operand, Results
from weft.graph.composites.numerics.next_float import next_after
from weft.support.dtypes import DType, f32, f64, i32, i64


class _Format(NamedTuple):
    """The integers of a float's width, the bits of its fraction, and the exponent field of numbers from 1/2 to 1."""

    bits: DType
    fraction: int
    half: int


_FORMATS: Final = {f32: _Format(i32, 23, 126), f64: _Format(i64, 52, 1022)}


@translates("prims.frexp.default", "frexp.Tensor")
def frexp(c: Call) -> Results:
    """A fraction from 1/2 to below 1, and the power of two that it is multiplied by."""
    x, form = _float(c, c.tensor())
    one, zero = c.scalar(1, form.bits), c.scalar(0, x.dtype)
    tiny = c.scalar(float(ml_dtypes.finfo(x.dtype.numpy).tiny), x.dtype)
    is_small = c.add("less", c.add("abs", x), tiny)  # it has no leading one until it is made larger
    whole = c.add("where", is_small, c.add("mul", x, c.scalar(2.0**form.fraction, x.dtype)), x)
    bits = c.add("bit_cast", whole, dtype=form.bits)
    field = c.scalar(2 * form.half + 3, form.bits)
    exponent = c.add("bit_and", c.add("shift_right", bits, c.scalar(form.fraction, form.bits)), field)
    rest = c.add("sub", bits, c.add("shift_left", exponent, c.scalar(form.fraction, form.bits)))
    half = c.add("shift_left", c.scalar(form.half, form.bits), c.scalar(form.fraction, form.bits))
    fraction = c.add("bit_cast", c.add("bit_or", rest, half), dtype=x.dtype)
    power = c.add("sub", exponent, c.scalar(form.half, form.bits))
    power = c.add("sub", power, c.add("mul", c.cast(is_small, form.bits), c.scalar(form.fraction, form.bits)))
    is_other = c.add("logical_or", c.add("equal", x, zero), c.add("equal", exponent, field))  # zero, infinity, NaN
    power = c.add("where", is_other, c.add("sub", one, one), power)
    return c.add("where", is_other, x, fraction), c.cast(power, i32)


@translates("nextafter", "prims.nextafter.default")
def nextafter(c: Call) -> Results:
    """The float next to self towards other."""
    return next_after(c, c.operand("self", c.dtype), c.operand("other", c.dtype))


def _float(c: Call, x: Operand) -> tuple[Operand, _Format]:
    if x.dtype not in _FORMATS:
        c.fail(f"the bits of {x.dtype} are not supported", "convert it to float32 in the module")
    return x, _FORMATS[x.dtype]
