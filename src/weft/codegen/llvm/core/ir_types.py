"""The LLVM IR spelling of Weft's types and constants.

The 16-bit floats travel as `i16` bit patterns and are widened to `float` for arithmetic (see `conversions`): LLVM's own lowering
of `bfloat` and `half` calls library functions, or flushes denormals, on some targets. A bool is `i1` in registers and a byte
in memory.
"""

from __future__ import annotations

import struct
from functools import cache
from typing import Final

import numpy as np

from weft.ir import Value
from weft.support.dtypes import DType

_FLOATS: Final = {32: "float", 64: "double"}


@cache
def register_type(dtype: DType) -> str:
    """Returns the LLVM type of a value of *dtype*, such as `<16 x float>`."""
    return _vector(_element(dtype), dtype.lanes)


@cache
def memory_type(dtype: DType) -> str:
    """Returns the LLVM type of *dtype* in memory, where a bool takes a byte."""
    return _vector("i8" if dtype.is_bool else _element(dtype), dtype.lanes)


def _element(dtype: DType) -> str:
    if dtype.kind == "handle":
        return "ptr"
    if dtype.kind == "float" and dtype.bits in _FLOATS:
        return _FLOATS[dtype.bits]
    return f"i{dtype.bits}"


def _vector(element: str, lanes: int) -> str:
    return element if lanes == 1 else f"<{lanes} x {element}>"


@cache
def mangled(dtype: DType) -> str:
    """Returns the suffix that LLVM's overloaded intrinsics take for *dtype*, such as `v16f32`."""
    element = f"f{dtype.bits}" if _element(dtype) in ("float", "double") else f"i{dtype.bits}"
    return element if dtype.lanes == 1 else f"v{dtype.lanes}{element}"


def is_half(dtype: DType) -> bool:
    """Tells whether *dtype* is a 16-bit float, which is computed in f32."""
    return dtype.is_float and dtype.bits == 16


def literal(value: Value, dtype: DType) -> str:
    """Returns a scalar constant of *dtype* as LLVM text; floats by their bits, so NaN and -0.0 are exact."""
    if dtype.is_bool:
        return "true" if value else "false"
    if dtype.is_int or dtype.is_storage:
        return str(int(value))
    if is_half(dtype):
        return str(int(np.asarray(value).astype(dtype.numpy).view(np.uint16)))
    return f"0x{struct.unpack('<Q', struct.pack('<d', value))[0]:016X}"


def splat(element: str, dtype: DType) -> str:
    """Returns the vector constant with the scalar constant *element* in every lane of *dtype*; a scalar is itself."""
    return element if dtype.lanes == 1 else f"splat ({register_type(dtype.element)} {element})"


def filled(value: Value, dtype: DType) -> str:
    """Returns the constant of *dtype* with *value* in every lane."""
    return splat(literal(value, dtype.element), dtype)


def vector(elements: list[str], dtype: DType) -> str:
    """Returns the vector constant of *elements*, scalar constants of the element type of *dtype*."""
    of = register_type(dtype.element)
    return "<" + ", ".join([f"{of} {x}" for x in elements]) + ">"


def is_literal(text: str) -> bool:
    """Tells whether an operand is a constant rather than an instruction's or a parameter's name."""
    return text[0] != "%"


def is_true(text: str) -> bool:
    """Tells whether a bool operand is known to hold, in every lane."""
    return text in ("true", "splat (i1 true)")


def is_false(text: str) -> bool:
    """Tells whether a bool operand is known not to hold, in any lane."""
    return text in ("false", "splat (i1 false)")
