"""Expressions evaluated for many threads at once: a value is a NumPy array with one element a thread, or one scalar for all.

A vector is an array with a row for each thread, and a column for each lane.
Loads are left to the caller, which runs the threads. Only active threads load and fault; results of the others are dropped.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final, TypeAlias

import numpy as np

from weft import ir
from weft.codegen.interp.array_memory import Array
from weft.codegen.interp.faults import ExecutionError
from weft.codegen.interp.scalars import constant
from weft.ir import INTRINSICS, Expr, Node, Var
from weft.loop import Address, Load
from weft.support.errors import LoweringError

Mask: TypeAlias = "Array | None"
"""The active threads, or the active lanes of each; None for all."""
Memo: TypeAlias = dict[Node, Any]
Reader: TypeAlias = Callable[[Load, "Lanes", Mask, Memo], Array]


class Lanes:
    """The values of variables, and the evaluator of expressions of them."""

    def __init__(self, count: int, read: Reader) -> None:
        self.count = count
        self.values: dict[Var, Any] = {}
        self.read = read

    def evaluate(self, root: Expr, mask: Mask, memo: Memo | None = None) -> Any:
        """Returns the value of *root* in the threads of *mask*; *memo* caches the values computed in the same statement."""
        known: Memo = {} if memo is None else memo
        stack: list[Expr] = [root]
        while stack:
            e = stack[-1]
            if e in known:
                stack.pop()
                continue
            if todo := [k for k in _strict(e) if k not in known]:
                stack += reversed(todo)
                continue
            stack.pop()
            known[e] = self._value(e, mask, known)
        return known[root]

    def _value(self, e: Expr, mask: Mask, known: Memo) -> Any:
        if isinstance(e, Var):
            return self.values[e]
        if isinstance(e, Load):
            return self.read(e, self, mask, known)
        if isinstance(e, ir.Select):
            return self._select(e, mask, known)
        if isinstance(e, ir.And | ir.Or):
            return self._logic(e, mask, known)
        if isinstance(e, ir.DIVISIONS):
            self._check_divisor(known[e.b], mask)
        if isinstance(e, ir.Broadcast | ir.Ramp):
            return self._vector(e, known)
        made = _WRITERS.get(type(e), _operator)(e, [known[k] for k in _strict(e)])
        return np.asarray(made).astype(e.dtype.numpy, copy=False)[()]

    def both(self, holds: Any, mask: Mask) -> Array:
        """Returns the active threads in which *holds*, or the active lanes, where it is a condition of each lane."""
        lanes = np.shape(holds)[1] if np.ndim(holds) > 1 else 1
        cond = spread(holds, self.count, lanes)
        return cond if mask is None else cond & spread(mask, self.count, lanes)

    def _vector(self, e: ir.Broadcast | ir.Ramp, known: Memo) -> Array:
        """Returns a vector that is made of scalars."""
        values = [spread(known[k], self.count, e.lanes) for k in _strict(e)]
        if isinstance(e, ir.Broadcast):
            return values[0]
        base, stride = values
        made: Array = base + stride * np.arange(e.lanes, dtype=e.dtype.element.numpy)
        return made

    def _under(self, e: Expr, holds: Array, mask: Mask, known: Memo) -> Array:
        """Returns a vector, of which only the lanes matter where *holds* does."""
        lanes = holds.shape[1]
        active = holds if mask is None else holds & spread(mask, self.count, lanes)
        if not active.any():
            return np.zeros((self.count, lanes), e.dtype.element.numpy)
        return spread(self.evaluate(e, active, dict(known)), self.count, lanes)

    def _check_divisor(self, b: Any, mask: Mask) -> None:
        lanes = np.shape(b)[1] if np.ndim(b) > 1 else 1
        places = active_places(mask, self.count, lanes)
        if spread(np.equal(b, 0), self.count, lanes)[places].any():
            raise ExecutionError("division by zero")

    def _select(self, e: ir.Select, mask: Mask, known: Memo) -> Any:
        cond = known[e.cond]
        if e.cond.dtype.lanes > 1:
            return np.where(cond, self._under(e.then, cond, mask, known), self._under(e.other, ~cond, mask, known))
        if np.ndim(cond) == 0:
            return self.evaluate(e.then if cond else e.other, mask, known)
        sides = []
        for side, holds in ((e.then, cond), (e.other, ~cond)):
            active = holds if mask is None else holds & _of_threads(mask)
            zero = e.dtype.numpy.type(0)
            sides.append(self.evaluate(side, active, dict(known)) if active.any() else zero)
        return np.where(cond[:, None] if e.dtype.lanes > 1 else cond, *sides)

    def _logic(self, e: ir.And | ir.Or, mask: Mask, known: Memo) -> Any:
        a = known[e.a]
        decided = np.logical_not(a) if isinstance(e, ir.And) else a
        if np.all(decided):
            return a
        if e.dtype.lanes > 1:
            return np.where(decided, a, self._under(e.b, ~decided, mask, known))
        open_ = np.broadcast_to(np.logical_not(decided), self.count)
        b = self.evaluate(e.b, open_ if mask is None else open_ & _of_threads(mask), dict(known))
        return np.where(decided, a, b)[()]


def active_places(mask: Mask, count: int, lanes: int) -> tuple[Array, ...]:
    """Returns the numbers of the active threads of *count*; of vectors, those of threads and of lanes."""
    if lanes > 1:
        return np.nonzero(np.ones((count, lanes), bool) if mask is None else spread(mask, count, lanes))
    return (np.arange(count) if mask is None else np.flatnonzero(_of_threads(mask)),)


def spread(x: Any, count: int, lanes: int) -> Array:
    """Returns a value with an element for each thread, and for each lane of vectors."""
    made: Array = np.asarray(x)
    if lanes == 1:
        return np.broadcast_to(made, count)
    return np.broadcast_to(made[:, None] if made.ndim == 1 else made, (count, lanes))


def _of_threads(mask: Array) -> Array:
    """Returns the threads of which any lane is active."""
    if mask.ndim == 1:
        return mask
    threads: Array = np.asarray(mask.any(1))
    return threads


def _strict(e: Expr) -> tuple[Expr, ...]:
    """Returns the operands that are always evaluated, before *e*; a load's are, too."""
    if isinstance(e, ir.Select):
        return (e.cond,)
    if isinstance(e, ir.And | ir.Or):
        return (e.a,)
    return e.children()  # type: ignore[return-value]


def _operator(e: Any, values: list[Any]) -> Any:
    if not isinstance(e, ir.Binary):
        raise LoweringError(f"a {type(e).__name__} cannot be run by a thread")
    return e.numpy(*values)


def _cast(e: ir.Cast, values: list[Any]) -> Any:
    return np.not_equal(values[0], 0) if e.dtype.is_bool else np.asarray(values[0]).astype(e.dtype.numpy)


def _reinterpret(e: ir.Reinterpret, values: list[Any]) -> Any:
    made = np.atleast_1d(np.asarray(values[0], e.a.dtype.numpy)).view(e.dtype.numpy)
    return made if np.ndim(values[0]) else made[0]


def _negation(e: ir.Not, values: list[Any]) -> Any:
    return np.logical_not(values[0]) if e.dtype.is_bool else np.invert(values[0])


_WRITERS: Final[dict[type[Expr], Callable[[Any, list[Any]], Any]]] = {
    ir.Const: lambda e, v: constant(e),
    ir.Neg: lambda e, v: np.negative(v[0]),
    ir.Not: _negation,
    ir.Shuffle: lambda e, v: np.concatenate(v, 1)[:, list(e.picks)],
    ir.Cast: _cast,
    ir.Reinterpret: _reinterpret,
    ir.Apply: lambda e, v: INTRINSICS[e.fn].reference(*v),
    Address: lambda e, v: 0,
}
