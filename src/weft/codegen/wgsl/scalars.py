"""Operators of scalars in WGSL: integers wrap, as the language says; those of two words, and of NaNs, are helpers."""

from __future__ import annotations

from typing import Final

from weft import ir
from weft.codegen.c_family.c_types import is_half
from weft.codegen.c_family.scalars import SYMBOLS, check_native, narrow, widen, widened
from weft.codegen.c_family.writer import Writer
from weft.codegen.wgsl.type_conversions import convert, reinterpret, wrapped
from weft.codegen.wgsl.wgsl_types import WIDE, is_wide
from weft.ir import Apply, Binary, Expr
from weft.support.dtypes import DType

_ROUNDINGS: Final = {"floor": "floor", "ceil": "ceil", "trunc": "trunc", "round_even": "round"}
_BITS: Final = (ir.BitAnd, ir.BitOr, ir.BitXor)
_SHIFTS: Final = (ir.ShiftLeft, ir.ShiftRight)
_WIDE: Final[dict[type[Expr], str]] = {
    ir.Add: "add",
    ir.Sub: "sub",
    ir.Mul: "mul",
    ir.FloorDiv: "floordiv",
    ir.FloorMod: "floormod",
    ir.TruncDiv: "truncdiv",
    ir.TruncMod: "truncmod",
    ir.Min: "min",
    ir.Max: "max",
    ir.ShiftLeft: "shl",
    ir.ShiftRight: "shr",
    ir.Lt: "lt",
    ir.Le: "le",
}
_SIGNLESS: Final = (ir.Add, ir.Sub, ir.Mul, ir.ShiftLeft)


def binary(f: Writer, e: Binary, a: str, b: str) -> str:
    """Returns a binary operator."""
    kind, dtype = type(e), e.a.dtype.element
    if is_wide(dtype):
        return _wide(f, e, a, b)
    if dtype.is_bool:
        return _of_bools(e, a, b)
    if kind in (ir.Min, ir.Max):
        return _extremum(f, e, widen(f, a, dtype), widen(f, b, dtype))
    if kind in (ir.FloorDiv, ir.FloorMod):
        return _floor(f, e, a, b)
    if dtype.is_float:
        return narrow(f, f"({widen(f, a, dtype)} {SYMBOLS[kind]} {widen(f, b, dtype)})", e.dtype)
    if kind in _SHIFTS:
        b = b if dtype.kind == "uint" else f"u32({b})"
    text = f"({a} {SYMBOLS[kind]} {b})"
    return text if e.dtype.is_bool or kind in _BITS else wrapped(text, dtype)


def _of_bools(e: Binary, a: str, b: str) -> str:
    match e:
        case ir.Eq():
            return f"({a} == {b})"
        case ir.Ne() | ir.BitXor():
            return f"({a} != {b})"
        case ir.BitAnd() | ir.Min() | ir.Mul():
            return f"({a} && {b})"
        case ir.BitOr() | ir.Max() | ir.Add():
            return f"({a} || {b})"
        case ir.Lt():
            return f"(!{a} && {b})"
        case _:
            return f"(!{a} || {b})"


def _wide(f: Writer, e: Binary, a: str, b: str) -> str:
    """Returns an operator of numbers of two words."""
    match e:
        case ir.Eq():
            return f"all({a} == {b})"
        case ir.Ne():
            return f"any({a} != {b})"
        case ir.BitAnd() | ir.BitOr() | ir.BitXor():
            return f"({a} {SYMBOLS[type(e)]} {b})"
    name = "i64" if type(e) in _SIGNLESS else e.a.dtype.name
    return f"{f.helper(f'{_WIDE[type(e)]}_{name}')}({a}, {b})"


def _extremum(f: Writer, e: Binary, a: str, b: str) -> str:
    name = "min" if isinstance(e, ir.Min) else "max"
    if not e.dtype.is_float:
        return f"{name}({a}, {b})"
    return narrow(f, f"{f.helper(f'{name}_f32')}({a}, {b})", e.dtype)


def _floor(f: Writer, e: Binary, a: str, b: str) -> str:
    dtype, quotient = e.dtype.element, isinstance(e, ir.FloorDiv)
    divisor = int(e.b.value) if isinstance(e.b, ir.Const) else 0
    if divisor > 0 and divisor & (divisor - 1) == 0:
        shift, end = divisor.bit_length() - 1, "i" if dtype.kind == "int" else "u"
        return f"({a} >> {shift}u)" if quotient else f"({a} & {divisor - 1}{end})"
    if dtype.kind == "uint":
        return f"({a} {'/' if quotient else '%'} {b})"
    return wrapped(f"{f.helper('floordiv_i32' if quotient else 'floormod_i32')}({a}, {b})", dtype)


def negate(f: Writer, e: ir.Neg, a: str) -> str:
    """Returns a negation."""
    dtype = e.dtype.element
    if is_half(dtype):
        return f"({a} ^ 32768u)"
    if is_wide(dtype):
        return f"{f.helper('sub_i64')}({WIDE}(0u, 0u), {a})"
    return f"(-{a})" if dtype.is_float else wrapped(f"({'0i' if dtype.kind == 'int' else '0u'} - {a})", dtype)


def invert(e: ir.Not, a: str) -> str:
    """Returns a complement."""
    return f"(!{a})" if e.dtype.is_bool else wrapped(f"(~{a})", e.dtype.element) if not is_wide(e.dtype) else f"(~{a})"


def apply(f: Writer, e: Apply, args: list[str]) -> str:
    """Returns a function; raises `LoweringError` for one that had to be expanded before."""
    dtype = e.args[0].dtype.element
    check_native(f, e)
    if e.fn == "unlikely":
        return args[0]
    if e.fn == "watched":
        least = f"{_word(f, 'max', dtype)}({args[0]}, {args[1]})"
        return f"{_word(f, 'min', dtype)}({least}, {args[2]})"
    if not dtype.is_float:
        return args[0] if dtype.kind == "uint" else wrapped(f"{_word(f, 'abs', dtype)}({args[0]})", dtype)
    given = ", ".join([widen(f, a, dtype) for a in args])
    if e.fn == "rounded":
        return narrow(f, f"{f.helper('rounded_f32')}({given}, given.zero)", dtype)
    if e.fn in ("is_nan", "is_inf"):
        return f"{f.helper(f'{e.fn}_f32')}({given})"
    name = _ROUNDINGS.get(e.fn) or (e.fn if e.fn in ("sqrt", "abs") else f.helper(f"{e.fn}_{widened(dtype).name}"))
    return narrow(f, f"{name}({given})", dtype)


def _word(f: Writer, name: str, dtype: DType) -> str:
    """Returns the function called *name* of integers: the language's, or the helper for two words."""
    return f.helper(f"{name}_{dtype.name}") if is_wide(dtype) else name


def lane_of(f: Writer, e: Expr, given: list[str]) -> str:
    """Returns an operator whose operands are *given*; raises `LoweringError` for other expressions."""
    match e:
        case Binary():
            return binary(f, e, *given)
        case ir.Neg():
            return negate(f, e, *given)
        case ir.Not():
            return invert(e, *given)
        case ir.Cast():
            return convert(f, given[0], e.a.dtype, e.dtype)
        case ir.Reinterpret():
            return reinterpret(given[0], e.a.dtype, e.dtype)
        case Apply():
            return apply(f, e, given)
    raise f.error(f"{type(e).__name__} has no translation to {f.dialect.name}")
