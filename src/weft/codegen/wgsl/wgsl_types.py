"""The spelling in WGSL of Weft's types and constants.

A number of 64 bits is its low and its high word. Integers of less than 32 bits are i32 or u32 in expressions, always in their
range; the 16-bit floats are their bits, a u32, and are widened to f32 for arithmetic, and so are types that are only stored.
"""

from __future__ import annotations

import math
from typing import Final

import numpy as np

from weft.codegen.c_family.c_types import decimal_f32, is_half
from weft.codegen.c_family.writer import Writer
from weft.ir import Value
from weft.support.dtypes import DType

WIDE: Final = "vec2<u32>"
"""A number of 64 bits."""

_MASK: Final = 0xFFFFFFFF


def is_wide(dtype: DType) -> bool:
    """Tells whether *dtype* is an integer of two words."""
    return dtype.is_int and dtype.bits == 64


def is_packed(dtype: DType) -> bool:
    """Tells whether several elements of *dtype* are in a word of memory that others see."""
    return dtype.is_bool or dtype.bits < 32


def packed_bits(dtype: DType) -> int:
    """Returns the bits of a packed element: a bool has a byte."""
    return max(8, dtype.bits)


def value_type(dtype: DType) -> str:
    """Returns the type of one lane of *dtype* in expressions, and in memory that one thread or one block sees."""
    if dtype.is_bool:
        return "bool"
    if is_wide(dtype):
        return WIDE
    if is_half(dtype) or dtype.is_storage:
        return "u32"
    if dtype.is_float:
        return "f32"
    return "i32" if dtype.kind == "int" else "u32"


def literal(f: Writer, value: Value, dtype: DType) -> str:
    """Returns a scalar constant; infinities and NaN, which the language has no words for, by their bits."""
    if dtype.is_bool:
        return "true" if value else "false"
    if is_half(dtype):
        return f"{int(np.asarray(value).astype(dtype.numpy).view(np.uint16))}u"
    if dtype.is_storage:
        return f"{int(value)}u"
    if dtype.is_int:
        return _integer(int(value), dtype)
    if math.isfinite(float(value)):
        return decimal_f32(float(value))
    return f"{f.helper('of_f32')}({int(np.float32(value).view(np.uint32))}u)"


def _integer(value: int, dtype: DType) -> str:
    if is_wide(dtype):
        return f"{WIDE}({value & _MASK}u, {value >> 32 & _MASK}u)"
    if dtype.kind == "uint":
        return f"{value}u"
    if value == -(1 << 31):  # whose digits alone are no number of the type
        return "bitcast<i32>(2147483648u)"
    return f"({value}i)" if value < 0 else f"{value}i"
