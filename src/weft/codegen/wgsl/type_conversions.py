"""Conversions between types in WGSL: each is written out, and those of numbers of two words are helpers."""

from __future__ import annotations

from weft.codegen.c_family.scalars import narrow, widen
from weft.codegen.c_family.writer import Writer
from weft.codegen.wgsl.wgsl_types import WIDE, is_wide, value_type
from weft.support.dtypes import DType, f32


def wrapped(x: str, dtype: DType) -> str:
    """Returns a word as an integer of *dtype*, of as many bits as that has or less."""
    if dtype.bits >= 32:
        return x
    return f"extractBits({x}, 0u, {dtype.bits}u)"


def convert(f: Writer, x: str, source: DType, to: DType) -> str:
    """Returns one lane *x* of type *source* as a value of type *to*."""
    source, to = source.element, to.element
    if source is to:
        return x
    if source.is_float:
        return _from_float(f, widen(f, x, source), to)
    if to.is_bool:
        return (
            f"any({x} != {WIDE}(0u, 0u))" if is_wide(source) else f"({x} != {'0i' if source.kind == 'int' else '0u'})"
        )
    if to.is_float:
        return narrow(f, _to_f32(f, x, source), to)
    return _between_integers(f, x, source, to)


def _from_float(f: Writer, x: str, to: DType) -> str:
    """Returns an f32 as another type."""
    if to.is_bool:
        return f"({x} != 0.0f)"
    if to.is_float:
        return narrow(f, x, to)
    if is_wide(to):
        return f"{f.helper(f'to_{to.name}')}({x})"
    if to is not f32 and to.kind == "uint" and to.bits == 32:
        return f"{f.helper('to_i64')}({x}).x"
    made = f"{f.helper('to_i32')}({x})"
    return wrapped(made if to.kind == "int" else f"u32({made})", to)


def _to_f32(f: Writer, x: str, source: DType) -> str:
    if source.is_bool:
        return f"select(0.0f, 1.0f, {x})"
    return f"{f.helper(f'{source.name}_to_f32')}({x})" if is_wide(source) else f"f32({x})"


def _between_integers(f: Writer, x: str, source: DType, to: DType) -> str:
    """Returns an integer or a bool as another integer: its low bits, or more of them by its sign."""
    if is_wide(to):
        if is_wide(source):
            return x
        if source.kind == "int":
            return f"{f.helper('extend')}({x})"
        return f"{WIDE}({f'select(0u, 1u, {x})' if source.is_bool else x}, 0u)"
    word = "i32" if to.kind == "int" else "u32"
    if source.is_bool:
        return f"select(0{word[0]}, 1{word[0]}, {x})"
    if is_wide(source):
        x, is_signed = f"{x}.x", False
    else:
        is_signed = source.kind == "int"
    made = x if is_signed == (to.kind == "int") else f"{word}({x})"
    fits = to.bits > source.bits or (to.bits == source.bits and to.kind == source.kind)
    return made if fits and (source.kind == "uint" or to.kind == "int") else wrapped(made, to)


def reinterpret(x: str, source: DType, to: DType) -> str:
    """Returns the bits of one lane as another type of its size."""
    source, to = source.element, to.element
    kinds = value_type(source), value_type(to)
    if kinds[0] == kinds[1]:
        return x
    made = f"bitcast<{kinds[1]}>({x})"
    return made if to.is_float or to.bits >= 32 else wrapped(made, to)
