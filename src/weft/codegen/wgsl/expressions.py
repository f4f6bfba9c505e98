"""Expressions in WGSL: scalars, and vectors lane by lane.

Counters that are known to fit 32 bits are i32, widened where they are a value.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final, TypeVar

from weft import ir
from weft.codegen.c_family.expressions import lanes, short_circuit
from weft.codegen.c_family.writer import Value
from weft.codegen.wgsl import scalars
from weft.codegen.wgsl.kernel_writer import KernelWriter
from weft.codegen.wgsl.wgsl_types import is_wide, literal, value_type
from weft.ir import Binary, Expr
from weft.support.dtypes import i32

H = TypeVar("H", bound=Callable[[KernelWriter, Any], Value])
EXPRESSIONS: Final[dict[type[Expr], Callable[[KernelWriter, Any], Value]]] = {}
"""The writer of each kind of expression."""


def writes(*types: type[Expr]) -> Callable[[H], H]:
    """Registers the writer of expressions of some *types*."""

    def add(handler: H) -> H:
        EXPRESSIONS.update(dict.fromkeys(types, handler))
        return handler

    return add


def narrow_form(f: KernelWriter, e: Expr) -> str | None:
    """Returns an integer of 64 bits as an i32, where it is known to be one: a counter, a constant, or an i32 made wider."""
    if isinstance(e, ir.Var):
        return f.name(e) if e in f.narrow else None
    if isinstance(e, ir.Const):
        return literal(f, e.value, i32) if -(1 << 31) <= int(e.value) < 1 << 31 else None
    return f.scalar(e.a) if isinstance(e, ir.Cast) and e.a.dtype is i32 else None


def low_word(f: KernelWriter, e: Expr) -> str:
    """Returns an integer of 64 bits as an i32 with its low word."""
    found = narrow_form(f, e)
    return found if found is not None else f"bitcast<i32>({f.scalar(e)}.x)"


@writes(ir.Var)
def _variable(f: KernelWriter, e: ir.Var) -> str:
    return f"{f.helper('extend')}({f.name(e)})" if e in f.narrow else f.name(e)


@writes(ir.Const)
def _const(f: KernelWriter, e: ir.Const) -> str:
    return literal(f, e.value, e.dtype)


@writes(ir.Add, ir.Sub, ir.Mul, ir.Div, ir.FloorDiv, ir.FloorMod, ir.TruncDiv, ir.TruncMod, ir.Min, ir.Max)
@writes(ir.BitAnd, ir.BitOr, ir.BitXor, ir.ShiftLeft, ir.ShiftRight, ir.Lt, ir.Le, ir.Eq, ir.Ne, ir.Neg, ir.Not)
@writes(ir.Reinterpret, ir.Apply)
def _operator(f: KernelWriter, e: Expr) -> Value:
    operands = [k for k in e.children() if isinstance(k, Expr)]
    if e.dtype.lanes > 1:
        columns = zip(*[lanes(f, k) for k in operands], strict=True)
        return tuple([scalars.lane_of(f, e, list(c)) for c in columns])
    return scalars.lane_of(f, e, [f.scalar(k) for k in operands])


@writes(ir.Broadcast)
def _broadcast(f: KernelWriter, e: ir.Broadcast) -> Value:
    return (f.atom(e.value),) * e.lanes


@writes(ir.Cast)
def _cast(f: KernelWriter, e: ir.Cast) -> Value:
    if e.dtype is i32 and is_wide(e.a.dtype):
        return low_word(f, e.a)
    return _operator(f, e)


@writes(ir.Select)
def _select(f: KernelWriter, e: ir.Select) -> Value:
    """Chooses by a function, which computes both sides, unless one of them reads memory."""
    if e.dtype.lanes > 1:
        return _select_lanes(f, e)
    cond = f.scalar(e.cond)
    if not (f.may_trap(e.then) or f.may_trap(e.other)):
        return f"select({f.scalar(e.other)}, {f.scalar(e.then)}, {cond})"
    name = f.fresh("s")
    f.line(f"var {name}: {value_type(e.dtype)};")
    for head, side in ((f"if ({cond})", e.then), ("else", e.other)):
        with f.suite(head):
            f.line(f"{name} = {f.scalar(side)};")
    return name


def _select_lanes(f: KernelWriter, e: ir.Select) -> Value:
    """Chooses lane by lane of two vectors that are computed in any case: no access and no division of WGSL's traps."""
    sides = zip(lanes(f, e.other), lanes(f, e.then), strict=True)
    conds = lanes(f, e.cond) if e.cond.dtype.lanes > 1 else (f.atom(e.cond),) * e.dtype.lanes
    return tuple([f"select({b}, {a}, {c})" for (b, a), c in zip(sides, conds, strict=True)])


@writes(ir.And, ir.Or)
def _logic(f: KernelWriter, e: Binary) -> Value:
    if e.dtype.lanes == 1:
        return short_circuit(f, e, declaring="var")
    symbol = "&&" if isinstance(e, ir.And) else "||"
    return tuple([f"({a} {symbol} {b})" for a, b in zip(lanes(f, e.a), lanes(f, e.b), strict=True)])
