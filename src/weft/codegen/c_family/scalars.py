"""Scalar expressions as C: arithmetic that wraps without undefined behaviour, NaN-propagating extrema, exact conversions."""

from __future__ import annotations

from typing import Final

from weft import ir
from weft.codegen.c_family.c_types import is_half, scalar_type, unsigned_type
from weft.codegen.c_family.writer import Writer
from weft.ir import Apply, Binary, Expr
from weft.support.dtypes import DType, f32

SYMBOLS: Final[dict[type[Expr], str]] = {
    ir.Add: "+", ir.Sub: "-", ir.Mul: "*", ir.Div: "/", ir.TruncDiv: "/", ir.TruncMod: "%", ir.BitAnd: "&", ir.BitOr: "|",
    ir.BitXor: "^", ir.ShiftLeft: "<<", ir.ShiftRight: ">>", ir.Lt: "<", ir.Le: "<=", ir.Eq: "==", ir.Ne: "!=",
    ir.And: "&&", ir.Or: "||",
}  # fmt: skip
_WRAPPING: Final = (ir.Add, ir.Sub, ir.Mul, ir.ShiftLeft)


def widen(f: Writer, x: str, dtype: DType) -> str:
    """Returns a 16-bit float as an f32; other values as they are."""
    if not is_half(dtype):
        return x
    return f"{f.helper('from_bf16' if dtype.kind == 'bfloat' else 'from_f16')}({x})"


def narrow(f: Writer, x: str, dtype: DType) -> str:
    """Rounds an f32 to a 16-bit float; other values stay as they are."""
    if not is_half(dtype):
        return x
    return f"{f.helper('to_bf16' if dtype.kind == 'bfloat' else 'to_f16')}({x})"


def widened(dtype: DType) -> DType:
    """Returns the type of a lane of *dtype* in arithmetic."""
    return f32 if is_half(dtype) else dtype.element


def binary(f: Writer, e: Binary, a: str, b: str) -> str:
    """Returns a binary operator of one lane of *e*."""
    kind, dtype = type(e), e.a.dtype.element
    if kind in (ir.Min, ir.Max):
        name = f.helper("min" if kind is ir.Min else "max", widened(dtype))
        return narrow(f, f"{name}({widen(f, a, dtype)}, {widen(f, b, dtype)})", dtype)
    if kind in (ir.FloorDiv, ir.FloorMod):
        return _floor(f, e, a, b)
    symbol = SYMBOLS[kind]
    if dtype.is_float:
        return narrow(f, f"({widen(f, a, dtype)} {symbol} {widen(f, b, dtype)})", e.dtype)
    if dtype.is_int and kind in _WRAPPING and not f.is_index(e):
        return wrapped(dtype, f"({_unsigned(a, dtype)} {symbol} {_unsigned(b, dtype)})")
    text = f"({a} {symbol} {b})"
    return text if e.dtype.is_bool or dtype.bits >= 32 else f"({scalar_type(dtype)}){text}"


def _unsigned(x: str, dtype: DType) -> str:
    return x if dtype.kind == "uint" and dtype.bits >= 32 else f"({unsigned_type(dtype)}){x}"


def wrapped(dtype: DType, text: str) -> str:
    """Returns unsigned arithmetic as a value of an integer type."""
    return text if dtype.kind == "uint" and dtype.bits >= 32 else f"({scalar_type(dtype)}){text}"


def _floor(f: Writer, e: Binary, a: str, b: str) -> str:
    dtype, quotient = e.dtype.element, isinstance(e, ir.FloorDiv)
    divisor = e.b.value.value if isinstance(e.b, ir.Broadcast) and isinstance(e.b.value, ir.Const) else None
    divisor = e.b.value if isinstance(e.b, ir.Const) else divisor
    if divisor is not None and int(divisor) > 0 and int(divisor) & (int(divisor) - 1) == 0:
        shift = int(divisor).bit_length() - 1
        text = f"({a} >> {shift})" if quotient else f"({a} & {int(divisor) - 1})"
    elif dtype.kind == "uint":
        text = f"({a} {'/' if quotient else '%'} {b})"
    else:
        return f"{f.helper('floordiv' if quotient else 'floormod', dtype)}({a}, {b})"
    return text if dtype.bits >= 32 else f"({scalar_type(dtype)}){text}"


def negate(e: ir.Neg, a: str) -> str:
    """Returns the negation of one lane."""
    dtype = e.dtype.element
    if is_half(dtype):
        return f"(uint16_t)({a} ^ 0x8000)"
    return f"(-{a})" if dtype.is_float else wrapped(dtype, f"(0 - {_unsigned(a, dtype)})")


def invert(e: ir.Not, a: str) -> str:
    """Returns the complement of one lane."""
    dtype = e.dtype.element
    return f"(!{a})" if dtype.is_bool else f"({scalar_type(dtype)})(~{a})"


def convert(f: Writer, x: str, source: DType, to: DType) -> str:
    """Returns one lane *x* of type *source* as a value of type *to*."""
    source, to = source.element, to.element
    if source is to:
        return x
    if to.is_bool:
        return f"({widen(f, x, source)} != 0)"
    if to.is_float:
        return _to_float(f, x, source, to)
    if not source.is_float:
        return f"({scalar_type(to)}){x}"
    wide = widened(source)
    name = f.helper(f"to_{to.name}" if to.bits >= 32 else "to_i32", wide)
    made = f"{name}({widen(f, x, source)})"
    return made if to.bits >= 32 else f"({scalar_type(to)}){made}"


def _to_float(f: Writer, x: str, source: DType, to: DType) -> str:
    if is_half(to) and to.kind == "float" and source.is_float and source.bits == 64:
        return narrow(f, f"{f.helper('to_odd')}({x})", to)
    wide = widened(to)
    x = widen(f, x, source)
    return narrow(f, x if widened(source) is wide else f"({scalar_type(wide)}){x}", to)


def reinterpret(f: Writer, x: str, source: DType, to: DType) -> str:
    """Returns the bits of one lane as another type of its size."""
    source, to = source.element, to.element
    is_float = [t.is_float and not is_half(t) for t in (source, to)]
    if is_float[0] and not is_float[1]:
        x, is_float[0] = f"{f.helper('bits', source)}({x})", False
    elif is_float[1] and not is_float[0]:
        return f"{f.helper('of', to)}({x})"
    return x if is_float[0] else f"({scalar_type(to)}){x}"


def check_native(f: Writer, e: Apply) -> None:
    """Raises `LoweringError` for a function that the target lacks, which had to be expanded by a pass."""
    if e.fn not in f.target.isa.native:
        raise f.error(f"the target {f.target.name} has no {e.fn}", hint="expand it before code generation")


def apply(f: Writer, e: Apply, args: list[str]) -> str:
    """Returns a function of one lane; raises `LoweringError` for one that had to be expanded before."""
    dtype = e.args[0].dtype.element
    check_native(f, e)
    if e.fn == "unlikely":
        return args[0]
    if e.fn == "watched":
        if f.dialect.watched_argument is None:
            least = f"{f.helper('max', dtype)}({args[0]}, {args[1]})"
            return f"{f.helper('min', dtype)}({least}, {args[2]})"
        return f"{f.helper('watched', dtype)}({f.dialect.watched_argument}, {', '.join(args)})"
    if not dtype.is_float:
        return args[0] if dtype.kind == "uint" else f"{f.helper('iabs', dtype)}({args[0]})"
    wide = widened(dtype)
    given = ", ".join([widen(f, a, dtype) for a in args])
    if e.fn == "sqrt":
        if f.dialect.header is not None:
            f.needs.includes.add(f.dialect.header)
        return narrow(f, f"{f.dialect.square_roots[wide.bits]}({given})", dtype)
    made = f"{f.helper(e.fn, wide)}({given})"
    return made if e.dtype.is_bool else narrow(f, made, dtype)


def constant(f: Writer, value: ir.Value, dtype: DType) -> str:
    """Returns a constant, with the helper that infinities and NaN take."""
    text = f.dialect.literal(value, dtype)
    if text.startswith("weft_"):
        f.helper("of", dtype)
    return text


def lane_of(f: Writer, e: Expr, given: list[str]) -> str:
    """Returns one lane of an operator whose operands' lanes are *given*; raises `LoweringError` for other expressions."""
    match e:
        case Binary():
            return binary(f, e, *given)
        case ir.Neg():
            return negate(e, *given)
        case ir.Not():
            return invert(e, *given)
        case ir.Cast():
            return convert(f, given[0], e.a.dtype, e.dtype)
        case ir.Reinterpret():
            return reinterpret(f, given[0], e.a.dtype, e.dtype)
        case Apply():
            return apply(f, e, given)
    raise f.error(f"{type(e).__name__} has no translation to {f.dialect.name}")
