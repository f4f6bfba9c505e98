"""Removes redundant conversions: a value that a wider type holds unchanged need not be converted to it in between."""

from __future__ import annotations

from typing import Final

from weft.ir.bounds.bounds import Bounds
from weft.ir.bounds.interval import Interval
from weft.ir.expr.base import Expr
from weft.ir.expr.nodes import Cast
from weft.support.dtypes import DType, bf16, f16, f32, f64

_PRECISION: Final = {f16: 11, bf16: 8, f32: 24, f64: 53}
"""Bits of significand: all integers up to 2 to this power are represented."""


def fewer_casts(n: Cast, bounds: Bounds) -> Expr | None:
    """Returns *n* without a conversion that changes no value; None if all are needed.

    i32(i16(u8 x)) -> i32(x)        f16(f32(f16 x)) -> x        u8(u16(i32 x)) -> u8(x)
    """
    a = n.a
    if a.dtype is n.dtype:
        return a
    if not isinstance(a, Cast) or not (_is_faithful(a, bounds) or _truncates(a, n.dtype)):
        return None
    return a.a if a.a.dtype is n.dtype else Cast(a.a, n.dtype)


def _is_faithful(cast: Cast, bounds: Bounds) -> bool:
    """Answers whether the conversion keeps the value of its operand."""
    source, target = cast.a.dtype.element, cast.dtype.element
    if source.is_bool or source is target:
        return True
    if target.is_bool:
        return False
    if source.is_float:
        return target.is_float and _holds_floats(source, target)
    values = bounds.of(cast.a)
    if target.is_int:
        wider = source.kind == target.kind and target.bits >= source.bits
        return wider or values.is_within(Interval(*target.int_range))
    return values.lo is not None and values.hi is not None and max(-values.lo, values.hi) <= 1 << _PRECISION[target]


def _holds_floats(source: DType, target: DType) -> bool:
    return target is f64 or (target is f32 and source is not f64)


def _truncates(cast: Cast, target: DType) -> bool:
    """Answers whether the low bits that *target* keeps pass through the conversion."""
    return cast.a.dtype.is_int and cast.dtype.is_int and target.is_int and target.bits <= cast.dtype.bits
