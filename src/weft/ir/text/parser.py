"""Reads the text form of expressions, with Python's own parser; `ir.text.printer` writes it.

Nodes are built exactly as written: nothing is folded, and the operands' types must agree. `loop.parser` extends
`ExprParser` with accesses to buffers.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Mapping, Sequence
from math import isinf
from typing import Any, Final, TypeAlias

import numpy as np

from weft.ir.expr.base import INDEX, Expr
from weft.ir.expr.binary import (
    Add,
    And,
    Binary,
    BitAnd,
    BitOr,
    BitXor,
    Div,
    Eq,
    FloorDiv,
    FloorMod,
    Le,
    Lt,
    Max,
    Min,
    Mul,
    Ne,
    Or,
    ShiftLeft,
    ShiftRight,
    Sub,
    TruncDiv,
    TruncMod,
)
from weft.ir.expr.constructors import const
from weft.ir.expr.dot import Dot
from weft.ir.expr.nodes import Apply, Broadcast, Cast, Const, Neg, Not, Ramp, Reinterpret, Select, Shuffle
from weft.ir.expr.pure_functions import INTRINSICS
from weft.ir.text.names import type_named
from weft.support.dtypes import DType, bool_, f32
from weft.support.errors import ParseError, TypeMismatch

Plan: TypeAlias = tuple[Sequence[ast.expr], Callable[..., Expr]]
"""The operands to read first, and the function that builds a node of them."""

_BINARY: Final[dict[type[ast.operator], type[Binary]]] = {
    ast.Add: Add,
    ast.Sub: Sub,
    ast.Mult: Mul,
    ast.Div: Div,
    ast.FloorDiv: FloorDiv,
    ast.Mod: FloorMod,
    ast.BitAnd: BitAnd,
    ast.BitOr: BitOr,
    ast.BitXor: BitXor,
    ast.LShift: ShiftLeft,
    ast.RShift: ShiftRight,
}
_COMPARE: Final[dict[type[ast.cmpop], Callable[[Expr, Expr], Expr]]] = {
    ast.Lt: Lt,
    ast.LtE: Le,
    ast.Eq: Eq,
    ast.NotEq: Ne,
    ast.Gt: lambda a, b: Lt(b, a),
    ast.GtE: lambda a, b: Le(b, a),
}
_CALLS: Final[dict[str, tuple[int, Callable[..., Expr]]]] = {
    "min": (2, Min),
    "max": (2, Max),
    "truncdiv": (2, TruncDiv),
    "truncmod": (2, TruncMod),
    "select": (3, Select),
    "neg": (1, Neg),
    "dot": (3, Dot),
}


class ExprParser:
    """Reads expressions whose names *scope* explains."""

    def __init__(self, text: str, scope: Mapping[str, Any]) -> None:
        self.lines = text.splitlines()
        self.scope: Mapping[str, Any] = scope

    def error(self, at: ast.AST, message: str, hint: str | None = None) -> TextError:
        """Returns an error that points at the syntax node *at*."""
        line, column = getattr(at, "lineno", 1), getattr(at, "col_offset", 0)
        source = self.lines[line - 1] if line <= len(self.lines) else ""
        column = len(source.encode()[:column].decode(errors="replace"))  # Python counts bytes
        return TextError(message, source, line, column + 1, hint)

    def expr(self, root: ast.expr) -> Expr:
        """Reads one expression, however deeply nested."""
        done: dict[ast.expr, Expr] = {}
        stack: list[tuple[ast.expr, Plan | None]] = [(root, None)]
        while stack:
            at, plan = stack.pop()
            if plan is None:
                plan = self.plan(at)
                stack.append((at, plan))
                stack += [(k, None) for k in reversed(plan[0])]
                continue
            done[at] = self.build(at, plan[1], [done[k] for k in plan[0]])
        return done[root]

    def build(self, at: ast.AST, make: Callable[..., Expr], operands: Sequence[Expr]) -> Expr:
        """Builds a node; a type error becomes a `ParseError` that shows where."""
        try:
            return make(*operands)
        except TypeMismatch as e:
            raise self.error(at, e.message, e.hint) from None

    def plan(self, at: ast.expr) -> Plan:
        """Decides which node *at* stands for, before its operands are read."""
        match at:
            case ast.Constant():
                return (), lambda: self.literal(at, None)
            case ast.Name():
                return (), lambda: self.variable(at)
            case ast.BinOp(left, op, right) if type(op) in _BINARY:
                return (left, right), _BINARY[type(op)]
            case ast.UnaryOp(op, operand):
                return self.unary(at, op, operand)
            case ast.BoolOp(op, values):
                cls = And if isinstance(op, ast.And) else Or
                return values, lambda first, *rest: _fold(cls, first, rest)
            case ast.Compare(left, [op], [right]) if type(op) in _COMPARE:
                return (left, right), _COMPARE[type(op)]
            case ast.Compare(_, [_, _, *_]):
                raise self.error(at, "comparisons cannot be chained", "join them by `and`")
            case ast.Call(ast.Name(fn), args, []):
                return self.call(at, fn, args)
        raise self.error(at, f"expected an expression, not `{ast.unparse(at)}`")

    def unary(self, at: ast.expr, op: ast.unaryop, operand: ast.expr) -> Plan:
        """Reads `-x`, `~x`, `not x` and negative numbers."""
        if isinstance(op, ast.USub):
            return ((), lambda: self.literal(at, None)) if _is_number(operand) else ((operand,), Neg)
        if isinstance(op, ast.UAdd):
            raise self.error(at, "there is no unary `+`")
        wanted = "bool" if isinstance(op, ast.Not) else "int"

        def build(x: Expr) -> Expr:
            if not (x.dtype.is_bool if wanted == "bool" else x.dtype.is_int):
                raise self.error(at, f"`{'not' if wanted == 'bool' else '~'}` takes {wanted} types, not {x.dtype}")
            return Not(x)

        return (operand,), build

    def variable(self, at: ast.Name) -> Expr:
        """Reads the name of a variable."""
        found = self.scope.get(at.id)
        if isinstance(found, Expr):
            return found
        if found is None:
            raise self.error(at, f"`{at.id}` is not defined here")
        raise self.error(at, f"`{at.id}` is not a variable", f"write {at.id}[...] for an element of it")

    def call(self, at: ast.expr, fn: str, args: list[ast.expr]) -> Plan:
        """Reads a call of a function: a cast or a typed constant, a word of the language, or an intrinsic."""
        dtype = type_named(fn)
        if dtype is not None:
            return self.conversion(at, dtype, args)
        if fn in ("cast", "reinterpret"):
            self.arity(at, fn, args, 2)
            to = self.dtype(args[0])
            cls = Cast if fn == "cast" else Reinterpret
            return args[1:], lambda x: cls(x, to)
        if fn in ("ramp", "broadcast"):
            self.arity(at, fn, args, 3 if fn == "ramp" else 2)
            lanes = self.count(args[-1])
            if fn == "broadcast":
                return args[:-1], lambda x: Broadcast(x, lanes)
            return args[:-1], lambda base, stride: Ramp(base, stride, lanes)
        if fn == "shuffle":
            self.arity(at, fn, args[:2], 2)
            picks = tuple([self.lane(p) for p in args[2:]])
            return args[:2], lambda a, b: Shuffle(a, b, picks)
        if fn in _CALLS:
            arity, make = _CALLS[fn]
            self.arity(at, fn, args, arity)
            return args, make
        if fn in INTRINSICS:
            return args, lambda *x: Apply(fn, x)
        raise self.error(at, f"there is no function `{fn}`")

    def conversion(self, at: ast.expr, dtype: DType, args: list[ast.expr]) -> Plan:
        """Reads `i32(3)`, a constant, or `i32(x)`, a cast."""
        self.arity(at, dtype.name, args, 1)
        if _is_number(args[0]) or (isinstance(args[0], ast.Constant) and isinstance(args[0].value, str)):
            return (), lambda: self.literal(args[0], dtype)
        if isinstance(args[0], ast.UnaryOp) and _is_number(args[0].operand) and isinstance(args[0].op, ast.USub):
            return (), lambda: self.literal(args[0], dtype)
        return args, lambda x: Cast(x, dtype)

    def arity(self, at: ast.AST, fn: str, args: Sequence[object], wanted: int) -> None:
        """Checks the number of arguments of a call."""
        if len(args) != wanted:
            raise self.error(at, f"`{fn}` takes {wanted} argument{'s'[: wanted != 1]}, not {len(args)}")

    def dtype(self, at: ast.expr) -> DType:
        """Reads the name of a type."""
        found = type_named(at.id) if isinstance(at, ast.Name) else None
        if found is None:
            raise self.error(at, f"expected a type such as f32 or i8x16, not `{ast.unparse(at)}`")
        return found

    def count(self, at: ast.expr) -> int:
        """Reads a positive integer."""
        if isinstance(at, ast.Constant) and type(at.value) is int and at.value > 0:
            return at.value
        raise self.error(at, f"expected a positive number of lanes, not `{ast.unparse(at)}`")

    def lane(self, at: ast.expr) -> int:
        """Reads the number of a lane."""
        if isinstance(at, ast.Constant) and type(at.value) is int:
            return at.value
        raise self.error(at, f"expected the number of a lane, not `{ast.unparse(at)}`")

    def literal(self, at: ast.expr, dtype: DType | None) -> Expr:
        """Reads a number (or a string for nan and inf) as a constant of *dtype*, by default i64, f32 or bool."""
        value = -at.operand.value if isinstance(at, ast.UnaryOp) else at.value  # type: ignore[attr-defined]
        if type(value) is bool and dtype is None:
            return const(value, bool_)
        if type(value) is int and not (dtype is not None and dtype.is_float):
            return self.integer(at, value, INDEX if dtype is None else dtype)
        if type(value) not in (int, float, str) or (dtype is None and type(value) is str):
            raise self.error(at, f"expected a number, not `{ast.unparse(at)}`")
        return self.float_(at, value, f32 if dtype is None else dtype)

    def integer(self, at: ast.AST, value: int, dtype: DType) -> Expr:
        """Makes an integer constant, checking its range."""
        low, high = dtype.int_range
        if dtype.is_bool or dtype.lanes != 1 or not low <= value <= high or (dtype.is_storage and value):
            raise self.error(at, f"{value} is not of type {dtype}")
        return Const(value, dtype)

    def float_(self, at: ast.AST, value: int | float | str, dtype: DType) -> Expr:
        """Makes a float constant, rounded to its type."""
        try:
            number = float(value)
        except (ValueError, OverflowError):
            raise self.error(at, f"{value!r} is not a number") from None
        if not dtype.is_float or dtype.lanes != 1:
            raise self.error(at, f"{value!r} is not of type {dtype}")
        with np.errstate(all="ignore"):
            rounded = Const(float(np.asarray(number).astype(dtype.numpy)), dtype)
        if not isinstance(value, str) and isinf(rounded.value):
            raise self.error(at, f"{value!r} is too large for {dtype}", f'write {dtype}("inf") for infinity')
        return rounded


def _is_number(at: ast.expr) -> bool:
    return isinstance(at, ast.Constant) and type(at.value) in (int, float)


def _fold(cls: type[Binary], first: Expr, rest: Sequence[Expr]) -> Expr:
    for x in rest:
        first = cls(first, x)
    return first


class TextError(ParseError):
    """An error at a place of a text: *line* and *column*, counted from one, with the line's *source* shown."""

    def __init__(self, message: str, source: str, line: int, column: int, hint: str | None = None) -> None:
        shown = f"{message}\n    {source}\n    {' ' * (column - 1)}^" if source else message
        super().__init__(shown, where=f"line {line}, column {column}", hint=hint)
        self.line = line
        self.column = column


def python_syntax(text: str, mode: str) -> Any:
    """Parses *text* by Python's grammar; raises `ParseError` where it is not even that."""
    try:
        return ast.parse(text, mode=mode)
    except SyntaxError as e:
        line, column = e.lineno or 1, e.offset or 1
        raise TextError(e.msg, (e.text or "").rstrip("\n"), line, column) from None
    except (RecursionError, MemoryError, ValueError) as e:
        raise TextError(f"Python cannot parse this: {e}", "", 1, 1) from None


def parse_expr(text: str, scope: Mapping[str, Expr]) -> Expr:
    """Reads one expression whose variables are those of *scope*; raises `ParseError` with line and column."""
    text = text.strip()
    return ExprParser(text, scope).expr(python_syntax(text, "eval").body)
