"""The floats next to others, by arithmetic on their bits: those of one sign are ordered as the integers of their bits are."""

from __future__ import annotations

import math
from typing import Final

from weft.graph.builder.builder import Builder
from weft.graph.builder.partial_evaluator import Operand
from weft.support.dtypes import DType, f32, f64, i32, i64

_BITS: Final[dict[DType, DType]] = {f32: i32, f64: i64}


def next_after(b: Builder, x: Operand, y: Operand) -> Operand:
    """Returns the float next to *x* towards *y*, of the same type, which is *y* where they are equal."""
    if x.dtype not in _BITS:
        b.fail(f"the bits of {x.dtype} are not supported", "convert it to float32")
    integers = _BITS[x.dtype]
    zero, one = b.scalar(0, x.dtype), b.scalar(1, integers)
    is_up = b.add("less", x, y)
    grows = b.add("equal", is_up, b.add("less", zero, x))
    step = b.add("where", grows, one, b.scalar(-1, integers))
    moved = b.add("bit_cast", b.add("add", b.add("bit_cast", x, dtype=integers), step), dtype=x.dtype)
    smallest = b.add("bit_cast", one, dtype=x.dtype)
    from_zero = b.add("where", is_up, smallest, b.add("neg", smallest))
    made = b.add("where", b.add("equal", x, zero), from_zero, moved)
    made = b.add("where", b.add("equal", x, y), y, made)
    is_nan = b.add("logical_or", b.add("is_nan", x), b.add("is_nan", y))
    return b.add("where", is_nan, b.scalar(math.nan, x.dtype), made)
