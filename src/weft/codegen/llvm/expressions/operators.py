"""Arithmetic, comparisons and selection of values."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from weft.codegen.llvm.core.affine_operands import Affine, Lanes, Operand
from weft.codegen.llvm.core.emitter import Emitter, emits
from weft.codegen.llvm.core.ir_types import filled, is_false, is_half, is_true, literal, register_type, splat, vector
from weft.codegen.llvm.core.symbolic_indices import as_affine, symbolic
from weft.codegen.llvm.expressions.conversions import narrow, widen, widened
from weft.ir import (
    INDEX,
    Add,
    Binary,
    BitAnd,
    BitOr,
    BitXor,
    Broadcast,
    Cast,
    Const,
    Div,
    Eq,
    Expr,
    Le,
    Lt,
    Max,
    Min,
    Mul,
    Ne,
    Neg,
    Node,
    Not,
    Ramp,
    ShiftLeft,
    ShiftRight,
    Sub,
)
from weft.loop import Load
from weft.support.dtypes import DType, bool_

_FLOAT: Final[dict[type[Node], str]] = {
    Add: "fadd contract",
    Sub: "fsub contract",
    Mul: "fmul contract",
    Div: "fdiv contract",
}
_SIGNED: Final[dict[type[Node], str]] = {
    Add: "add",
    Sub: "sub",
    Mul: "mul",
    ShiftLeft: "shl",
    ShiftRight: "ashr",
    BitAnd: "and",
    BitOr: "or",
    BitXor: "xor",
}
_UNSIGNED: Final[dict[type[Node], str]] = {**_SIGNED, ShiftRight: "lshr"}


@emits(Const)
def constant(f: Emitter, e: Const) -> Operand:
    """Emits a constant; an index stays symbolic."""
    return Affine(int(e.value)) if e.dtype is INDEX else literal(e.value, e.dtype)


@emits(Broadcast)
def broadcast(f: Emitter, e: Broadcast, value: Operand) -> Operand:
    """Emits a vector with one value in each lane."""
    if e.value.dtype is INDEX and e.lanes > 1:
        return Lanes(as_affine(value), Affine(0), e.lanes)
    return f.build.broadcast(f.build.text(value), register_type(e.value.dtype), e.lanes)


@emits(Ramp)
def ramp(f: Emitter, e: Ramp, base: Operand, stride: Operand) -> Operand:
    """Emits an arithmetic sequence of integers."""
    if e.lanes == 1:
        return base
    if e.base.dtype is INDEX:
        return Lanes(as_affine(base), as_affine(stride), e.lanes)
    kind, element = register_type(e.dtype), register_type(e.base.dtype)
    iota = vector([str(i) for i in range(e.lanes)], e.dtype)
    first, step = (f.build.broadcast(f.build.text(x), element, e.lanes) for x in (base, stride))
    scaled = f.build.pure(f"mul {kind} {iota}, {step}", step)
    return f.build.pure(f"add {kind} {scaled}, {first}", scaled, first)


@emits(Add, Sub, Mul, Div, ShiftLeft, ShiftRight, BitAnd, BitOr, BitXor)
def arithmetic(f: Emitter, e: Binary, a: Operand, b: Operand) -> Operand:
    """Emits a binary operator; index sums stay symbolic, 16-bit floats are computed in f32."""
    known = symbolic(f.build, e, a, b) if e.dtype.element is INDEX else None
    if known is not None:
        return known
    x, y = f.build.text(a), f.build.text(b)
    if e.dtype.is_float:
        return _in_f32(f, e.dtype, _FLOAT[type(e)], x, y)
    name = (_UNSIGNED if e.dtype.kind in ("uint", "bool") else _SIGNED)[type(e)]
    return f.build.pure(f"{name} {register_type(e.dtype)} {x}, {y}", x, y)


def _in_f32(f: Emitter, dtype: DType, name: str, x: str, y: str) -> str:
    """Emits a float operator, through f32 for 16-bit floats."""
    x, y = widen(f, x, dtype), widen(f, y, dtype)
    return narrow(f, f.build.pure(f"{name} {register_type(widened(dtype))} {x}, {y}", x, y), dtype)


@emits(Neg)
def negate(f: Emitter, e: Neg, a: Operand) -> Operand:
    """Emits the negation; of a 16-bit float by its sign bit."""
    if isinstance(a, Affine):
        return a.times(-1)
    x, kind = f.build.text(a), register_type(e.dtype)
    if is_half(e.dtype):
        return f.build.pure(f"xor {kind} {x}, {splat('-32768', e.dtype)}", x)
    if e.dtype.is_float:
        return f.build.pure(f"fneg {kind} {x}", x)
    return f.build.pure(f"sub {kind} {splat('0', e.dtype)}, {x}", x)


@emits(Not)
def invert(f: Emitter, e: Not, a: Operand) -> Operand:
    """Emits the complement."""
    x, ones = f.build.text(a), "true" if e.dtype.is_bool else "-1"
    if is_true(x) or is_false(x):
        return splat("false" if is_true(x) else "true", e.dtype)
    return f.build.pure(f"xor {register_type(e.dtype)} {x}, {splat(ones, e.dtype)}", x)


@emits(Min, Max)
def extremum(f: Emitter, e: Binary, a: Operand, b: Operand) -> Operand:
    """Emits the smaller or larger operand; a NaN among floats wins."""
    if isinstance(a, Affine) and isinstance(b, Affine) and a.plus(b, -1).is_constant:
        return a if (a.plus(b, -1).constant > 0) == isinstance(e, Max) else b
    x, y = f.build.text(a), f.build.text(b)
    if e.dtype.is_float:
        return _float_extremum(f, e, x, y)
    sign = "u" if e.dtype.kind == "uint" else "s"
    made = f.intrinsic(f"{sign}{'max' if isinstance(e, Max) else 'min'}", e.dtype, x, y)
    if isinstance(a, Affine) and isinstance(b, Affine):
        signs = [f.build.is_nonnegative(a), f.build.is_nonnegative(b)]
        if any(signs) if isinstance(e, Max) else all(signs):
            f.build.nonnegative.add(made)
    return made


def _float_extremum(f: Emitter, e: Binary, x: str, y: str) -> str:
    """Emits a NaN-propagating extremum: the machine's `x > y ? x : y` yields y where either is NaN, so x must not be."""
    dtype = e.dtype
    order = "ogt" if isinstance(e, Max) else "olt"
    kind, flags = register_type(widened(dtype)), register_type(bool_.with_lanes(dtype.lanes))
    if _checked_operand(e) is e.b:
        x, y = y, x
    x, y = widen(f, x, dtype), widen(f, y, dtype)
    start = filled(float("-inf" if isinstance(e, Max) else "inf"), widened(dtype))
    if start in (x, y):
        return narrow(f, y if x == start else x, dtype)
    better = f.build.pure(f"fcmp {order} {kind} {x}, {y}", x, y)
    made = f.build.pure(f"select {flags} {better}, {kind} {x}, {kind} {y}", better, x, y)
    if not (never_nan(e.a) or never_nan(e.b)):
        nan = f.build.pure(f"fcmp uno {kind} {x}, {filled(0.0, widened(dtype))}", x)
        # a constant NaN rather than x, or LLVM makes one selection of the two and loses the machine's own extremum
        quiet = filled(float("nan"), widened(dtype))
        made = f.build.pure(f"select {flags} {nan}, {kind} {quiet}, {kind} {made}", nan, made)
    return narrow(f, made, dtype)


def larger_number(f: Emitter, dtype: DType, x: str, y: str) -> str:
    """Emits the larger of two operands, and x where either is NaN: the machine's own extremum."""
    start = filled(float("-inf"), dtype)
    if start in (x, y):
        return y if x == start else x
    better = f.build.pure(f"fcmp ogt {register_type(dtype)} {y}, {x}", x, y)
    flags = register_type(bool_.with_lanes(dtype.lanes))
    return f.build.pure(
        f"select {flags} {better}, {register_type(dtype)} {y}, {register_type(dtype)} {x}", better, x, y
    )


def _checked_operand(e: Binary) -> Expr:
    """Returns the operand that must not be NaN: one that never is, else the one that is not an accumulator.

    An accumulator is the end of a long chain of extrema, to which the test of the other operand adds nothing.
    """
    if never_nan(e.a) or never_nan(e.b):
        return e.a if never_nan(e.a) else e.b
    return e.a if _is_accumulator(e.b) and not _is_accumulator(e.a) else e.b


def _is_accumulator(e: Expr) -> bool:
    return isinstance(e, Load) and e.buffer.in_registers


def never_nan(e: Expr) -> bool:
    """Tells whether *e* is certainly not NaN: a number, or converted from an integer."""
    if isinstance(e, Const):
        return e.value == e.value
    if isinstance(e, Broadcast):
        return never_nan(e.value)
    return isinstance(e, Cast) and not e.a.dtype.is_float


_COMPARE: Final[dict[type[Node], tuple[str, str, str]]] = {
    Lt: ("olt", "slt", "ult"),
    Le: ("ole", "sle", "ule"),
    Eq: ("oeq", "eq", "eq"),
    Ne: ("une", "ne", "ne"),
}
_DECIDE: Final[dict[type[Node], Callable[[int], bool]]] = {
    Lt: lambda d: d < 0,
    Le: lambda d: d <= 0,
    Eq: lambda d: d == 0,
    Ne: lambda d: d != 0,
}


@emits(Lt, Le, Eq, Ne)
def compare(f: Emitter, e: Binary, a: Operand, b: Operand) -> Operand:
    """Emits a comparison; of lanes numbered by a ramp, as one 32-bit comparison with the number of lanes that pass."""
    if isinstance(a, Affine) and isinstance(b, Affine):
        known = _decide(f, type(e), a.plus(b, -1))
        if known is not None:
            return known
    if isinstance(a, Lanes) and isinstance(b, Lanes) and isinstance(e, (Lt, Le)):
        prefix = _prefix_mask(f, e, a, b)
        if prefix is not None:
            return prefix
    dtype = e.a.dtype
    x, y = f.build.text(a), f.build.text(b)
    floats, signed, unsigned = _COMPARE[type(e)]
    if dtype.is_float:
        x, y = widen(f, x, dtype), widen(f, y, dtype)
        return f.build.pure(f"fcmp {floats} {register_type(widened(dtype))} {x}, {y}", x, y)
    name = signed if dtype.kind == "int" else unsigned
    return f.build.pure(f"icmp {name} {register_type(dtype)} {x}, {y}", x, y)


def _decide(f: Emitter, cls: type[Node], difference: Affine) -> str | None:
    """Returns the answer of a comparison whose operands differ by *difference*, if it is known."""
    if difference.is_constant:
        return "true" if _DECIDE[cls](difference.constant) else "false"
    opposite = difference.times(-1)
    if f.build.is_nonnegative(difference.plus(Affine(-1))):
        return "true" if cls is Ne else "false"
    if f.build.is_nonnegative(opposite.plus(Affine(-1))):
        return "false" if cls is Eq else "true"
    if cls is Lt and f.build.is_nonnegative(difference):
        return "false"
    return "true" if cls is Le and f.build.is_nonnegative(opposite) else None


def _prefix_mask(f: Emitter, e: Binary, a: Lanes, b: Lanes) -> str | None:
    """Returns the lanes i with `a0 + i < b0`, where the left side counts lanes and the right side is uniform."""
    step = a.step.plus(b.step, -1)
    if a.rest is not None or b.rest is not None or not (step.is_constant and step.constant == 1):
        return None
    passing = b.base.plus(a.base, -1).plus(Affine(int(isinstance(e, Le))))
    return prefix(f, passing, a.lanes)


def prefix(f: Emitter, passing: Affine, lanes: int) -> str:
    """Returns the mask whose first *passing* lanes hold."""
    if passing.is_constant and (passing.constant <= 0 or passing.constant >= lanes):
        return splat("true" if passing.constant > 0 else "false", bool_.with_lanes(lanes))
    if passing.is_constant:
        return vector(["true" if i < passing.constant else "false" for i in range(lanes)], bool_.with_lanes(lanes))
    clipped = f.build.scalar(passing)
    for name, bound in (("smax", 0), ("smin", lanes)):
        clipped = f.intrinsic(name, INDEX, clipped, str(bound))
    count = f.build.pure(f"trunc i64 {clipped} to i32", clipped)
    wide = f.build.broadcast(count, "i32", lanes)
    iota = ", ".join([f"i32 {i}" for i in range(lanes)])
    return f.build.pure(f"icmp slt <{lanes} x i32> <{iota}>, {wide}", wide)
