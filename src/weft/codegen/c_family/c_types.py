"""The spelling in C's family of Weft's types and constants.

The 16-bit floats are their bits, `uint16_t`, and are widened to `float` for arithmetic. A bool is `bool` in expressions and a
byte in memory.
"""

from __future__ import annotations

import math
import re
from typing import Final

import numpy as np

from weft.ir import Value
from weft.support.dtypes import DType

SHORT: Final = 1e6
"""Whole numbers below it are written in decimal."""

_FLOATS: Final = {32: "float", 64: "double"}


def is_half(dtype: DType) -> bool:
    """Tells whether *dtype* is a 16-bit float, which is computed in f32."""
    return dtype.is_float and dtype.bits == 16


def scalar_type(dtype: DType) -> str:
    """Returns the C type of one lane of *dtype* in expressions."""
    return "bool" if dtype.is_bool else memory_type(dtype)


def memory_type(dtype: DType) -> str:
    """Returns the C type of one lane of *dtype* in memory."""
    if dtype.kind == "handle":
        return "void *"
    if dtype.is_float and not is_half(dtype):
        return _FLOATS[dtype.bits]
    return f"{'int' if dtype.kind == 'int' else 'uint'}{max(8, dtype.bits)}_t"


def unsigned_type(dtype: DType) -> str:
    """Returns the C type in which integers of *dtype* wrap around: never narrower than `uint32_t`, which is not promoted."""
    return f"uint{max(32, dtype.bits)}_t"


def literal(value: Value, dtype: DType, wide: str = "ll") -> str:
    """Returns a scalar constant; floats in hexadecimal, so that they are exact, and infinities and NaN by their bits.

    *wide* is the suffix of integers of 64 bits.
    """
    if dtype.is_bool:
        return "true" if value else "false"
    if dtype.is_int or dtype.is_storage:
        return _integer(int(value), dtype, wide)
    if is_half(dtype):
        return f"0x{int(np.asarray(value).astype(dtype.numpy).view(np.uint16)):04x}"
    number = float(value)
    if not math.isfinite(number):
        word = np.uint32 if dtype.bits == 32 else np.uint64
        return f"weft_of_f{dtype.bits}(0x{int(np.asarray(number, dtype.numpy).view(word)):x}{'u' if dtype.bits == 32 else 'ull'})"
    text = str(number) if number.is_integer() and abs(number) < SHORT else number.hex()
    text += "f" if dtype.bits == 32 else ""
    return f"({text})" if text.startswith("-") else text


def decimal_f32(value: float) -> str:
    """Returns a finite f32 in the fewest decimal digits that stand for no other, for languages without hexadecimal floats."""
    text = f"{float(str(np.float32(value)))!r}f"
    return f"({text})" if text.startswith("-") else text


def _integer(value: int, dtype: DType, wide: str) -> str:
    if dtype.kind == "uint":
        return f"{value}{'u' if dtype.bits <= 32 else f'u{wide}'}"
    if value == -(1 << 63):
        return "INT64_MIN"
    text = f"{value}{wide}" if abs(value) >= 1 << 31 else str(value)
    return f"({text})" if value < 0 else text


def identifier(name: str) -> str:
    """Returns *name* with each character that C does not allow as its number, so that different names stay different."""
    return re.sub(r"\W", lambda m: f"_{ord(m[0]):x}_", name, flags=re.ASCII)
