"""A small evaluator of expressions, independent of the compiler's own passes: the oracle of the tests here."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from weft.ir import (
    INTRINSICS,
    And,
    Apply,
    Binary,
    Broadcast,
    Cast,
    Const,
    Expr,
    FloorDiv,
    FloorMod,
    Neg,
    Not,
    Or,
    Ramp,
    Reinterpret,
    Select,
    ShiftLeft,
    ShiftRight,
    TruncDiv,
    TruncMod,
    Var,
)
from weft.support.dtypes import DType


class Undefined(Exception):
    """The expression has no defined value here: a division by zero, a shift by too much, an overflow of i32 or i64."""


def evaluate(e: Expr, env: Mapping[Var, Any]) -> Any:
    """Returns the NumPy value of *e*: a scalar, or an array of its lanes. Raises `Undefined`."""
    with np.errstate(all="ignore"):
        return _eval(e, env)


def _eval(e: Expr, env: Mapping[Var, Any]) -> Any:
    if isinstance(e, Var):
        return np.asarray(env[e]).astype(e.dtype.numpy)[()]
    if isinstance(e, Const):
        return np.asarray(e.value).astype(e.dtype.numpy)[()]
    if isinstance(e, Select | And | Or):
        return _lazy(e, env)
    x = [_eval(k, env) for k in e.children() if isinstance(k, Expr)]
    if isinstance(e, Binary):
        return _binary(e, x[0], x[1])
    if isinstance(e, Ramp):
        return _checked([int(x[0]) + int(x[1]) * k for k in range(e.lanes)], e.dtype)
    if isinstance(e, Broadcast):
        return np.full(e.lanes, x[0]) if e.lanes > 1 else x[0]
    return _unary(e, x)


def _lazy(e: Expr, env: Mapping[Var, Any]) -> Any:
    if isinstance(e, Select):
        cond = _eval(e.cond, env)
        if np.ndim(cond) == 0:
            return _eval(e.then if cond else e.other, env)
        return np.where(cond, _eval(e.then, env), _eval(e.other, env))
    assert isinstance(e, And | Or)
    a = _eval(e.a, env)
    if np.ndim(a) == 0 and bool(a) is isinstance(e, Or):
        return a
    b = _eval(e.b, env)
    return (a & b) if isinstance(e, And) else (a | b)


def _checked(exact: Any, dtype: DType) -> Any:
    """Rounds exact integers to *dtype*: they wrap, but in i32 and i64 they must not."""
    values = np.asarray(exact, dtype=object)
    low, high = dtype.int_range
    flat = [int(v) for v in np.ravel(values)]
    if dtype.kind == "int" and dtype.bits >= 32 and any(not low <= v <= high for v in flat):
        raise Undefined
    wrapped = [(v - low) % (1 << dtype.bits) + low for v in flat]
    return np.asarray(wrapped, dtype=dtype.numpy).reshape(np.shape(values))[()]


def _exact(a: Any) -> Any:
    return np.asarray(a).astype(object)


def _binary(e: Binary, a: Any, b: Any) -> Any:
    if isinstance(e, FloorDiv | FloorMod | TruncDiv | TruncMod) and np.any(b == 0):
        raise Undefined
    if isinstance(e, ShiftLeft | ShiftRight) and np.any((b < 0) | (b >= e.dtype.bits)):
        raise Undefined
    if not e.a.dtype.is_int or e.dtype.is_bool:
        return e.numpy(a, b)
    if e.symbol in ("truncdiv", "truncmod"):
        return _checked(
            np.frompyfunc(_truncdiv if e.symbol == "truncdiv" else _truncmod, 2, 1)(_exact(a), _exact(b)), e.dtype
        )
    if e.symbol in ("min", "max"):
        return e.numpy(a, b)
    exact = {
        "+": np.add,
        "-": np.subtract,
        "*": np.multiply,
        "//": np.floor_divide,
        "%": np.mod,
        "&": np.bitwise_and,
        "|": np.bitwise_or,
        "^": np.bitwise_xor,
        "<<": np.left_shift,
        ">>": np.right_shift,
    }
    return _checked(exact[e.symbol](_exact(a), _exact(b)), e.dtype)


def _truncdiv(a: int, b: int) -> int:
    q = abs(a) // abs(b)
    return q if (a < 0) == (b < 0) else -q


def _truncmod(a: int, b: int) -> int:
    return a - b * _truncdiv(a, b)


def _unary(e: Expr, x: list[Any]) -> Any:
    if isinstance(e, Neg):
        return _checked(-_exact(x[0]), e.dtype) if e.dtype.is_int else np.negative(x[0])
    if isinstance(e, Not):
        return np.logical_not(x[0]) if e.dtype.is_bool else np.invert(x[0])
    if isinstance(e, Cast):
        return _cast(e, x[0])
    if isinstance(e, Reinterpret):
        return x[0].view(e.dtype.numpy)
    assert isinstance(e, Apply)
    return INTRINSICS[e.fn].reference(*x)


def _cast(e: Cast, a: Any) -> Any:
    if e.dtype.is_bool:
        return a != 0
    if e.a.dtype.is_float and e.dtype.is_int:
        low, high = e.dtype.int_range
        if not np.all(np.isfinite(a)) or np.any((np.trunc(a) < low) | (np.trunc(a) > high)):
            raise Undefined
    return np.asarray(a).astype(e.dtype.numpy)[()]


def same(a: Any, b: Any) -> bool:
    """Answers whether two values are equal to the bit, but for the sign and payload of a NaN."""
    a, b = np.asarray(a), np.asarray(b)
    if a.dtype != b.dtype or a.shape != b.shape:
        return False
    if a.dtype.kind in "biu":
        return bool(np.all(a == b))
    nan = (a != a) & (b != b)
    return bool(np.all(nan | ((a == b) & (np.signbit(a) == np.signbit(b)))))
