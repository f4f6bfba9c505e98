"""Constant folding in the operand's own type, by the operator's reference meaning in NumPy."""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import Any, Final

import numpy as np

from weft.ir.bounds.interval import Interval
from weft.ir.expr.base import Expr, Value
from weft.ir.expr.binary import DIVISIONS, Add, Binary, Mul, ShiftLeft, ShiftRight, Sub
from weft.ir.expr.constructors import const
from weft.ir.expr.nodes import Apply, Broadcast, Cast, Const, Neg, Not, Reinterpret, Select
from weft.ir.expr.pure_functions import INTRINSICS

_EXACT: Final[dict[type[Expr], Callable[..., int]]] = {
    Add: operator.add,
    Sub: operator.sub,
    Mul: operator.mul,
    Neg: operator.neg,
}


_CONSTANTS: Final = frozenset({Const, Broadcast})


def constant_value(e: Expr) -> Value | None:
    """Returns the value of a constant, or of one broadcast to all lanes; None for any other expression."""
    if type(e) is Const:
        return e.value
    return e.value.value if type(e) is Broadcast and type(e.value) is Const else None


def fold_constants(e: Expr) -> Expr:
    """Computes an operator whose operands are constants; any other node, or one with no defined value, is returned as it is."""
    kids = e.children()
    if not _CONSTANTS.issuperset(map(type, kids)):
        return e
    values = [constant_value(k) if isinstance(k, Expr) else None for k in kids]
    if not values or None in values or isinstance(e, Const | Broadcast) or any(k.dtype.is_storage for k in (e, *kids)):  # type: ignore[attr-defined]
        return e
    operands = [np.asarray(v).astype(k.dtype.numpy)[()] for v, k in zip(values, kids, strict=True)]  # type: ignore[attr-defined]
    with np.errstate(all="ignore"):
        found = None if _overflows(e, values) else _compute(e, operands)
    return e if found is None else const(found, e.dtype)


def _overflows(e: Expr, x: list[Any]) -> bool:
    """Answers whether exact arithmetic leaves its type, which is taken not to happen, so no value would be right."""
    if e.dtype.kind != "int" or e.dtype.bits < 32 or type(e) not in _EXACT:
        return False
    exact = _EXACT[type(e)](*x)
    return not Interval(*e.dtype.int_range).holds(exact)


def _compute(e: Expr, x: list[Any]) -> Any:
    if isinstance(e, Binary):
        return None if _is_undefined(e, x[1]) else type(e).numpy(x[0], x[1])
    if isinstance(e, Neg):
        return np.negative(x[0])
    if isinstance(e, Not):
        return np.logical_not(x[0]) if e.dtype.is_bool else np.invert(x[0])
    if isinstance(e, Select):
        return x[1] if x[0] else x[2]
    if isinstance(e, Cast):
        return _cast(e, x[0])
    if isinstance(e, Apply):
        return INTRINSICS[e.fn].reference(*x)
    if isinstance(e, Reinterpret) and not (e.dtype.is_bool or e.a.dtype.is_bool):
        return x[0].view(e.dtype.numpy)
    return None


def _is_undefined(e: Binary, b: Any) -> bool:
    if isinstance(e, DIVISIONS):
        return bool(b == 0)
    return isinstance(e, ShiftLeft | ShiftRight) and not 0 <= b < e.dtype.bits


def _cast(e: Cast, a: Any) -> Any:
    """A float that the integer type cannot hold has no defined conversion, so it is left to the target."""
    if e.dtype.is_bool:
        return a != 0
    if not (e.a.dtype.is_float and e.dtype.is_int):
        return int(a) if e.dtype.is_int else a
    low, high = e.dtype.int_range
    return int(a) if np.isfinite(a) and low <= int(a) <= high else None
