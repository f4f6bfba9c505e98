"""Integer division: towards minus infinity and towards zero, cheap where the divisor is known or the operands' signs are."""

from __future__ import annotations

from weft.codegen.llvm.core.affine_operands import Affine, Operand
from weft.codegen.llvm.core.emitter import Emitter, constant_of, emits
from weft.codegen.llvm.core.ir_types import register_type, splat
from weft.ir import INDEX, Binary, FloorDiv, FloorMod, TruncDiv, TruncMod
from weft.support.dtypes import DType, bool_


@emits(FloorDiv, FloorMod)
def floor_division(f: Emitter, e: Binary, a: Operand, b: Operand) -> Operand:
    """Emits `a // b` or `a % b`, symbolically where the divisor divides every term."""
    divisor, quotient = constant_of(e.b), isinstance(e, FloorDiv)
    known = _divided(a, divisor, quotient=quotient) if isinstance(a, Affine) and divisor else None
    if known is not None:
        return known
    x, y = f.build.text(a), f.build.text(b)
    positive = divisor is not None and divisor > 0
    nonnegative = e.dtype.kind == "uint" or (positive and _is_nonnegative(f, a))
    made = _floor(f, e, x, y, divisor, nonnegative=nonnegative)
    if e.dtype is not INDEX:
        return made
    if positive and (nonnegative or not quotient):
        f.build.nonnegative.add(made)
    return Affine(0, {made: 1})


def _divided(a: Affine, divisor: int, *, quotient: bool) -> Affine | None:
    """Returns the quotient or the remainder of a constant, or of a sum whose terms a positive *divisor* divides; else None."""
    if a.is_constant:
        return Affine(a.constant // divisor if quotient else a.constant % divisor)
    parts = a.divided(divisor) if divisor > 0 else None
    if parts is None:
        return None
    return parts[0] if quotient else Affine(parts[1])


def _is_nonnegative(f: Emitter, a: Operand) -> bool:
    return isinstance(a, Affine) and f.build.is_nonnegative(a)


def _floor(f: Emitter, e: Binary, x: str, y: str, divisor: int | None, *, nonnegative: bool) -> str:
    kind, quotient = register_type(e.dtype), isinstance(e, FloorDiv)
    if divisor is not None and divisor > 0 and divisor & (divisor - 1) == 0:
        return _by_power_of_two(f, e.dtype, x, divisor, quotient=quotient)
    if nonnegative:
        return divide(f, e, "udiv" if quotient else "urem", x, y)
    remainder = divide(f, e, "srem", x, y)
    zero, flags = splat("0", e.dtype), register_type(bool_.with_lanes(e.dtype.lanes))
    signs = f.build.pure(f"xor {kind} {remainder}, {y}", remainder, y)
    apart = f.build.pure(f"icmp slt {kind} {signs}, {zero}", signs)
    inexact = f.build.pure(f"icmp ne {kind} {remainder}, {zero}", remainder)
    fix = f.build.pure(f"and {flags} {apart}, {inexact}", apart, inexact)
    if quotient:
        down = f.build.pure(f"sext {flags} {fix} to {kind}", fix)
        q = divide(f, e, "sdiv", x, y)
        return f.build.pure(f"add {kind} {q}, {down}", q, down)
    up = f.build.pure(f"select {flags} {fix}, {kind} {y}, {kind} {zero}", fix, y)
    return f.build.pure(f"add {kind} {remainder}, {up}", remainder, up)


def _by_power_of_two(f: Emitter, dtype: DType, x: str, divisor: int, *, quotient: bool) -> str:
    kind = register_type(dtype)
    if not quotient:
        return f.build.pure(f"and {kind} {x}, {splat(str(divisor - 1), dtype)}", x)
    shift = "lshr" if dtype.kind == "uint" else "ashr"
    return f.build.pure(f"{shift} {kind} {x}, {splat(str(divisor.bit_length() - 1), dtype)}", x)


@emits(TruncDiv, TruncMod)
def truncated_division(f: Emitter, e: Binary, a: Operand, b: Operand) -> Operand:
    """Emits the division towards zero."""
    sign = "u" if e.dtype.kind == "uint" else "s"
    made = divide(f, e, f"{sign}{'div' if isinstance(e, TruncDiv) else 'rem'}", f.build.text(a), f.build.text(b))
    return Affine(0, {made: 1}) if e.dtype is INDEX else made


def divide(f: Emitter, e: Binary, name: str, x: str, y: str) -> str:
    """Emits an integer division, in place unless the divisor is a constant; lanes that are masked off divide by one."""
    kind = register_type(e.dtype)
    if constant_of(e.b):
        return f.build.pure(f"{name} {kind} {x}, {y}", x, y)
    if f.mask is not None and e.dtype.lanes > 1:
        one, flags = splat("1", e.dtype), register_type(bool_.with_lanes(e.dtype.lanes))
        y = f.build.here(f"select {flags} {f.mask}, {kind} {y}, {kind} {one}")
    return f.build.here(f"{name} {kind} {x}, {y}")
