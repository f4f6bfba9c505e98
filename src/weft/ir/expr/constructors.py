"""Building expressions: constants, operators with their operands broadcast and folded, and the functions users call.

Only frequent index arithmetic of schedules and lowering is folded here; the simplifier does the rest.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterable
from functools import partial
from typing import Final, TypeVar

import numpy as np

from weft.ir.expr.base import BUILDERS, INDEX, Expr, ExprLike, Value
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
)
from weft.ir.expr.nodes import Apply, Broadcast, Cast, Const, Neg, Not, Select
from weft.support.dtypes import DType, bool_
from weft.support.errors import TypeMismatch

_WRAPS: Final = 1 << 63
"""Index values from here on are out of range and wrap."""

E = TypeVar("E", bound=Expr)


def const(value: Value | np.generic, dtype: DType) -> Expr:
    """Returns *value* as a constant of *dtype*, rounded or wrapped as NumPy would; a vector type broadcasts it."""
    element = dtype.element
    if element.is_float:
        plain: Value = float(np.asarray(value).astype(element.numpy))
    elif element.is_bool:
        plain = bool(value)
    else:
        plain = _wrap(int(value), element)
    made = Const(plain, element)
    return made if dtype.lanes == 1 else Broadcast(made, dtype.lanes)


def _wrap(value: int, dtype: DType) -> int:
    if dtype is INDEX and -_WRAPS <= value < _WRAPS:
        return value
    low, high = dtype.int_range
    return value if low <= value <= high else (value - low) % (1 << dtype.bits) + low


def index(value: int) -> Const:
    """Returns the index constant *value*."""
    known = _SMALL.get(value)
    return Const(value, INDEX) if known is None else known


_SMALL: Final = {value: Const(value, INDEX) for value in range(-64, 1025)}
"""Frequent index constants, kept alive so that they are not built again and again."""


ZERO: Final = index(0)
ONE: Final = index(1)
TRUE: Final = Const(True, bool_)
FALSE: Final = Const(False, bool_)


def as_expr(value: ExprLike, dtype: DType = INDEX) -> Expr:
    """Returns *value* itself if it is an expression, else as a constant of *dtype*.

    Raises `TypeMismatch` for a Python number that *dtype* cannot hold, such as 0.5 as an index.
    """
    if isinstance(value, Expr):
        return value
    if type(value) is int and dtype is INDEX:
        return index(_wrap(value, INDEX))
    if dtype.is_int and (isinstance(value, float) and not value.is_integer()):
        raise TypeMismatch(f"{value!r} is not of type {dtype}", hint="write a value of that type, or cast()")
    return const(value, dtype)


def binary(cls: type[Binary], a: Expr, b: ExprLike) -> Expr:
    """Builds `a <op> b`; a scalar beside a vector is broadcast, and integer constants are folded at once."""
    right = b if isinstance(b, Expr) else as_expr(b, a.dtype)
    if a.dtype is not right.dtype and a.dtype.lanes != right.dtype.lanes:
        lanes = max(a.dtype.lanes, right.dtype.lanes)
        a, right = broadcast(a, lanes), broadcast(right, lanes)
    if type(a) is Const or type(right) is Const:
        return _fold_index(cls, a, right)
    return cls(a, right)


def _fold_index(cls: type[Binary], a: Expr, b: Expr) -> Expr:
    """Folds the frequent cases of index arithmetic: two constants, and the identities of + - * // with 0 and 1."""
    if a.dtype is not INDEX or b.dtype is not INDEX:
        return cls(a, b)
    if type(a) is Const and type(b) is Const:
        folded = _fold_constants(cls, int(a.value), int(b.value))
        return cls(a, b) if folded is None else folded
    if a is _LEFT_IDENTITY.get(cls):
        return b
    if b is _RIGHT_IDENTITY.get(cls):
        return a
    if cls is Mul and (a is ZERO or b is ZERO):
        return ZERO
    return cls(a, b)


_LEFT_IDENTITY: Final[dict[type[Binary], Const]] = {Add: ZERO, Mul: ONE}
_RIGHT_IDENTITY: Final[dict[type[Binary], Const]] = {Add: ZERO, Sub: ZERO, Mul: ONE, FloorDiv: ONE}
"""The constants whose sum, product or quotient with another index is that index."""


_FOLDED: Final[dict[type[Binary], Callable[[int, int], int]]] = {
    Add: operator.add,
    Sub: operator.sub,
    Mul: operator.mul,
    FloorDiv: operator.floordiv,
    FloorMod: operator.mod,
    Min: min,
    Max: max,
    Lt: operator.lt,
    Le: operator.le,
    Eq: operator.eq,
    Ne: operator.ne,
}


def _fold_constants(cls: type[Binary], a: int, b: int) -> Expr | None:
    fold = _FOLDED.get(cls)
    if fold is None or (b == 0 and cls in (FloorDiv, FloorMod)):
        return None
    value = fold(a, b)
    return (TRUE if value else FALSE) if isinstance(value, bool) else index(_wrap(value, INDEX))


def broadcast(value: Expr, lanes: int) -> Expr:
    """Returns *value* in each of *lanes* lanes; one that has them already is returned as it is."""
    return value if value.dtype.lanes == lanes else Broadcast(value, lanes)


def cast(value: Expr, dtype: DType) -> Expr:
    """Converts *value* to the element type of *dtype*; constants are converted at once."""
    target = dtype.with_lanes(value.dtype.lanes)
    if value.dtype is target:
        return value
    if isinstance(value, Const) and not (value.dtype.is_float and not dtype.is_float):
        return const(value.value, dtype.element)
    return Cast(value, target)


def apply(fn: str, *args: ExprLike) -> Expr:
    """Applies the intrinsic *fn*; plain numbers take the type of the first expression among the operands."""
    like = next((x.dtype for x in args if isinstance(x, Expr)), None)
    if like is None:
        raise TypeMismatch(f"{fn} needs at least one operand that is an expression")
    return Apply(fn, tuple([as_expr(x, like) for x in args]))


def select(cond: Expr, then: ExprLike, other: ExprLike) -> Expr:
    """Returns *then* where *cond* holds, else *other*; a constant condition chooses at once.

    Raises `TypeMismatch` where *cond* is no expression: `a == b` is Python's own comparison, of identity.
    """
    if not isinstance(cond, Expr):
        raise TypeMismatch(f"the condition of select is {cond!r}, not an expression", hint="write eq(a, b) or ne(a, b)")
    like = then.dtype if isinstance(then, Expr) else other.dtype if isinstance(other, Expr) else INDEX
    a, b = as_expr(then, like), as_expr(other, like)
    if cond is TRUE or a is b:
        return a
    return b if cond is FALSE else Select(cond, a, b)


def minimum(a: Expr, b: ExprLike) -> Expr:
    """Returns `min(a, b)`."""
    return binary(Min, a, b)


def maximum(a: Expr, b: ExprLike) -> Expr:
    """Returns `max(a, b)`."""
    return binary(Max, a, b)


def eq(a: Expr, b: ExprLike) -> Expr:
    """Returns the expression `a == b`."""
    return binary(Eq, a, b)


def ne(a: Expr, b: ExprLike) -> Expr:
    """Returns the expression `a != b`."""
    return binary(Ne, a, b)


def all_of(conditions: Iterable[Expr]) -> Expr:
    """Returns the conjunction of *conditions*; `true` for none."""
    result: Expr = TRUE
    for c in conditions:
        if c is not TRUE:
            result = c if result is TRUE else And(result, c)
    return result


def conjuncts(cond: Expr) -> list[Expr]:
    """Returns the conditions that *cond* is the conjunction of; none for `true`."""
    found: list[Expr] = []
    stack = [cond]
    while stack:
        c = stack.pop()
        if isinstance(c, And):
            stack += [c.b, c.a]
        elif c is not TRUE:
            found.append(c)
    return found


def ceil_div(a: ExprLike, b: ExprLike) -> Expr:
    """Returns `a / b` rounded up, for a positive *b*."""
    left, right = as_expr(a), as_expr(b)
    return (left + right - 1) // right


def _python_operators() -> None:
    """Fills in the builders of Python's operators, which `Expr` only names."""

    def reflected(cls: type[Binary]) -> Callable[[Expr, ExprLike], Expr]:
        return lambda a, b: binary(cls, as_expr(b, a.dtype), a)

    for cls in (Add, Sub, Mul, Div, FloorDiv, FloorMod, BitXor, ShiftLeft, ShiftRight, Lt, Le):
        BUILDERS[cls.symbol] = partial(binary, cls)
        BUILDERS[f"reflected {cls.symbol}"] = reflected(cls)
    BUILDERS["&"] = lambda a, b: binary(And if a.dtype.is_bool else BitAnd, a, b)
    BUILDERS["|"] = lambda a, b: binary(Or if a.dtype.is_bool else BitOr, a, b)
    BUILDERS["~"] = lambda a, _: Not(a)
    BUILDERS["negate"] = lambda a, _: _negate(a)


def _negate(a: Expr) -> Expr:
    if a.dtype.is_bool:
        raise TypeMismatch(f"`-` does not take {a.dtype}, only number types")
    return Neg(a)


_python_operators()
