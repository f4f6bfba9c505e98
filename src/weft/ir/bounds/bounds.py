"""Known ranges of the variables of an expression, and the interval that follows for any expression of them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

from weft.ir.bounds import interval as iv
from weft.ir.bounds.interval import NO, YES, Interval
from weft.ir.expr.base import Expr, ExprLike, Var
from weft.ir.expr.binary import (
    Add,
    And,
    BitAnd,
    BitOr,
    BitXor,
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
from weft.ir.expr.constructors import as_expr
from weft.ir.expr.node import Node
from weft.ir.expr.nodes import Apply, Broadcast, Cast, Const, Neg, Not, Ramp, Select
from weft.support.dtypes import DType

__all__ = ["EMPTY", "Bounds", "Interval"]

_MEMO_LIMIT: Final = 400_000
"""Entries after which a memo is emptied, so that a long-lived environment keeps no endless past alive."""


class Bounds:
    """An immutable environment: the inclusive range of each variable, whose ends may be expressions of other variables.

    Bind outer variables before the inner ones whose ranges speak of them: symbolic reasoning eliminates variables from the
    last bound to the first. The memos are caches only; they never change an answer.
    """

    __slots__ = ("_intervals", "_order", "memo", "ranges")

    def __init__(self) -> None:
        self.ranges: dict[Var, tuple[Expr | None, Expr | None]] = {}
        self.memo: dict[str, dict[Any, Any]] = {}
        self._intervals: dict[Expr, Interval] = {}
        self._order: dict[Var, int] | None = None

    @property
    def order(self) -> dict[Var, int]:
        """The positions of the variables in the order of binding."""
        if self._order is None:
            self._order = {v: k for k, v in enumerate(self.ranges)}
        return self._order

    def bind(self, var: Var, lo: ExprLike | None, hi: ExprLike | None) -> Bounds:
        """Returns an environment in which also `lo <= var <= hi`; None leaves an end open.

        The same question gets the same environment, with all that it remembers.
        """
        low = None if lo is None else as_expr(lo, var.dtype)
        high = None if hi is None else as_expr(hi, var.dtype)
        if self is EMPTY:  # which lives for ever
            return self._bound(var, low, high)
        memo = self.memo_for("bind")
        key = (var, low, high)
        found: Bounds | None = memo.get(key)
        if found is None:
            found = memo[key] = self._bound(var, low, high)
        return found

    def _bound(self, var: Var, low: Expr | None, high: Expr | None) -> Bounds:
        made = Bounds()
        made.ranges = dict(self.ranges)
        made.ranges.pop(var, None)
        made.ranges[var] = (low, high)
        return made

    def with_range(self, var: Var, lo: Expr | None, hi: Expr | None) -> Bounds:
        """Returns an environment in which *var* has another range, at the same position in the order of binding."""
        made = Bounds()
        made.ranges = {**self.ranges, var: (lo, hi)}
        return made

    def memo_for(self, purpose: str) -> dict[Any, Any]:
        """Returns the cache that an analysis named *purpose* keeps with this environment."""
        memo = self.memo.get(purpose)
        if memo is None:
            memo = self.memo[purpose] = {}
        elif len(memo) > _MEMO_LIMIT:
            memo.clear()
        return memo

    def of(self, e: Expr) -> Interval:
        """Returns an interval that holds every value of *e* (of each of its lanes); a bool counts as 0 or 1."""
        known = self._intervals.get(e)
        return self._walk(e) if known is None else known

    def _walk(self, root: Expr) -> Interval:
        memo = self._intervals
        if len(memo) > _MEMO_LIMIT:
            memo.clear()
        stack: list[Node] = [root]
        while stack:
            e = stack[-1]
            if e in memo:
                stack.pop()
                continue
            handler = _HANDLERS.get(type(e))
            for k in self._ends(e) if type(e) is Var else e.children() if handler else ():
                if k not in memo:
                    stack.append(k)
            if stack[-1] is not e:
                continue
            stack.pop()
            assert isinstance(e, Expr)
            memo[e] = handler(e, memo) if handler else self._leaf(e)
        return memo[root]

    def _ends(self, v: Var) -> tuple[Expr, ...]:
        return tuple([e for e in self.ranges.get(v, ()) if e is not None])

    def _leaf(self, e: Expr) -> Interval:
        limits = iv.of_type(e.dtype)
        ends = self.ranges.get(e) if isinstance(e, Var) else None
        if ends is None:
            return limits
        lo = None if ends[0] is None else self._intervals[ends[0]].lo
        hi = None if ends[1] is None else self._intervals[ends[1]].hi
        return Interval(limits.lo if lo is None else lo, limits.hi if hi is None else hi)


_Memo = dict[Expr, Interval]
_Handler = Callable[[Any, _Memo], Interval]


def _operator(bound: Callable[[Interval, Interval], Interval]) -> _Handler:
    """Lifts interval arithmetic to a node of two operands; a result that may wrap is all of its type."""

    def handler(e: Any, memo: _Memo) -> Interval:
        found = iv.near(bound(memo[e.a], memo[e.b]))
        return found if e.dtype.bits >= 64 and e.dtype.kind == "int" else _fit(found, e.dtype)

    return handler


def _comparison(decide: Callable[[Interval, Interval], Interval]) -> _Handler:
    def handler(e: Any, memo: _Memo) -> Interval:
        return iv.UNKNOWN_BOOL if e.a.dtype.is_float else decide(memo[e.a], memo[e.b])

    return handler


def _fit(found: Interval, dtype: DType) -> Interval:
    """Overflow of `i32` is taken not to happen, so the result is clipped to its limits; narrower and unsigned types wrap."""
    if dtype.kind == "int" and dtype.bits >= 32:
        return found
    return iv.wrap(found, dtype)


def _const(e: Const, memo: _Memo) -> Interval:
    return Interval(int(e.value), int(e.value)) if not e.dtype.is_float else iv.EVERYTHING


def _and(e: And, memo: _Memo) -> Interval:
    a, b = memo[e.a], memo[e.b]
    return NO if a == NO or b == NO else YES if a == YES and b == YES else iv.UNKNOWN_BOOL


def _or(e: Or, memo: _Memo) -> Interval:
    a, b = memo[e.a], memo[e.b]
    return YES if a == YES or b == YES else NO if a == NO and b == NO else iv.UNKNOWN_BOOL


def _not(e: Not, memo: _Memo) -> Interval:
    a = memo[e.a]
    if e.dtype.is_bool:
        return iv.sub(YES, a)
    return iv.sub(Interval(-1, -1) if e.dtype.kind == "int" else Interval(*[iv.of_type(e.dtype).hi] * 2), a)


def _neg(e: Neg, memo: _Memo) -> Interval:
    return _fit(iv.neg(memo[e.a]), e.dtype)


def _select(e: Select, memo: _Memo) -> Interval:
    cond = memo[e.cond]
    return memo[e.then] if cond == YES else memo[e.other] if cond == NO else iv.union(memo[e.then], memo[e.other])


def _cast(e: Cast, memo: _Memo) -> Interval:
    if e.a.dtype.is_float or e.dtype.is_float:
        return iv.of_type(e.dtype)
    if e.dtype.is_bool:
        return iv.not_equal(memo[e.a], NO)
    return iv.wrap(memo[e.a], e.dtype)


def _ramp(e: Ramp, memo: _Memo) -> Interval:
    return _fit(iv.add(memo[e.base], iv.mul(memo[e.stride], Interval(0, e.lanes - 1))), e.dtype)


def _apply(e: Apply, memo: _Memo) -> Interval:
    a = memo[e.args[0]]
    if e.fn == "watched":
        return iv.minimum(iv.maximum(a, memo[e.args[1]]), memo[e.args[2]])
    if e.fn != "abs" or not e.dtype.is_int:
        return iv.of_type(e.dtype)
    return _fit(iv.maximum(iv.maximum(a, iv.neg(a)), NO), e.dtype)


_HANDLERS: Final[dict[type[Node], _Handler]] = {
    Const: _const, Add: _operator(iv.add), Sub: _operator(iv.sub), Mul: _operator(iv.mul),
    FloorDiv: _operator(iv.floordiv), FloorMod: _operator(iv.floormod),
    TruncDiv: _operator(iv.truncdiv), TruncMod: _operator(iv.truncmod),
    Min: _operator(iv.minimum), Max: _operator(iv.maximum),
    BitAnd: _operator(iv.bitand), BitOr: _operator(iv.bitor), BitXor: _operator(iv.bitor),
    ShiftLeft: _operator(iv.shift_left), ShiftRight: _operator(iv.shift_right),
    Lt: _comparison(iv.less), Le: _comparison(iv.less_equal),
    Eq: _comparison(iv.equal), Ne: _comparison(iv.not_equal),
    And: _and, Or: _or, Not: _not, Neg: _neg, Select: _select, Cast: _cast,
    Ramp: _ramp, Broadcast: lambda e, memo: memo[e.value], Apply: _apply,
}  # fmt: skip

EMPTY: Final = Bounds()
"""Nothing is known about any variable."""
