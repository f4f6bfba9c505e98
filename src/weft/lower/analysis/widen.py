"""Widening: the vector of the values that a scalar expression takes as one variable runs over neighbouring values."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Final

from weft.ir import (
    DIVISIONS,
    INDEX,
    ONE,
    ZERO,
    Add,
    Apply,
    Binary,
    Bounds,
    Broadcast,
    Cast,
    Const,
    Expr,
    FloorDiv,
    FloorMod,
    Le,
    Lt,
    Mul,
    Neg,
    Node,
    Not,
    Ramp,
    Reinterpret,
    Select,
    Sub,
    Var,
    as_expr,
    broadcast,
    const,
    free_vars,
    known_divisor,
    prove,
    simplify,
    substitute,
)
from weft.loop import Address, Buffer, Load
from weft.support.dtypes import i32


class NotVectorizable(Exception):
    """The loop contains an operation without vector form; it is run one iteration at a time instead."""


class Widen:
    """Rewrites expressions to hold for `lanes` values of *lane* at once, `first, first + 1, ...`.

    Values that do not depend on *lane* stay scalar. Buffers in `expanded` are private to an iteration, so that each of their
    elements has become a row of `lanes`. Under a `mask`, loads that may then lie outside their buffer are guarded.
    """

    def __init__(self, lane: Var, first: Expr, lanes: int, bounds: Bounds) -> None:
        self.lanes = lanes
        self.bounds = bounds
        self.mask: Expr | None = None
        self.at_first = {lane: first}
        self.is_first_inside = True
        self.expanded: dict[Buffer, Buffer] = {}
        self.values: dict[Node, Expr] = {lane: Ramp(first, ONE, lanes)}
        self.memo: dict[Node, Expr] = {}

    def __call__(self, e: Expr) -> Expr:
        """Returns *e* as a vector, or as a scalar if all lanes agree."""
        memo = self.memo
        stack: list[Node] = [e]
        while stack:
            n = stack[-1]
            if n in memo:
                stack.pop()
                continue
            for k in n.children():
                if k not in memo:
                    stack.append(k)
            if stack[-1] is n:
                stack.pop()
                memo[n] = self._widened(n)
        return memo[e]

    def full(self, e: Expr) -> Expr:
        """Returns *e* with all lanes."""
        return broadcast(self(e), self.lanes)

    def enter(
        self, *, mask: Expr | None = None, cond: Expr | None = None, bounds: Bounds | None = None
    ) -> tuple[Expr | None, bool, Bounds]:
        """Enters a scope with another mask or other bounds; returns the state to be restored by `leave`.

        *cond* is the condition that the mask adds to the one before, for a single iteration.
        """
        before = self.mask, self.is_first_inside, self.bounds
        if mask is not None:
            self.mask = mask
            self.is_first_inside &= cond is not None and prove(substitute(cond, self.at_first), self.bounds)
        self.bounds = self.bounds if bounds is None else bounds
        self.memo = {}
        return before

    def leave(self, before: tuple[Expr | None, bool, Bounds]) -> None:
        """Leaves a scope."""
        self.mask, self.is_first_inside, self.bounds = before
        self.memo = {}

    def bind(self, var: Var, value: Expr) -> None:
        """Binds *var* to *value*."""
        self.values[var] = value
        self.memo[var] = value

    def _widened(self, n: Node) -> Expr:
        if isinstance(n, Var):
            return self.values.get(n, n)
        old = n.children()
        kids = [self.memo[k] for k in old]
        is_same = kids == list(old)  # nodes are equal only to themselves
        if isinstance(n, Load) and (self.expanded or self.mask is not None or not is_same):
            return self._load(n, kids)
        if is_same:
            return _as_expr(n)
        if all(k.dtype.lanes == 1 for k in kids):
            return _as_expr(n.rebuild(kids))
        if any(k.dtype.lanes not in (1, self.lanes) for k in kids):
            raise NotVectorizable
        return _binary(self, n, kids) if isinstance(n, Binary) else _HANDLERS.get(type(n), _refuse)(self, n, kids)

    def index(self, buffer: Buffer, i: Expr) -> tuple[Buffer, Expr]:
        """Returns the buffer that now holds the element *i* of *buffer*, and its index there."""
        if buffer not in self.expanded:
            return buffer, i
        step = as_expr(self.lanes)
        if i.dtype.lanes == 1:
            return self.expanded[buffer], Ramp(i * step, ONE, self.lanes)
        return self.expanded[buffer], _multiple(i, step) + Ramp(ZERO, ONE, self.lanes)

    def _load(self, n: Load, kids: Sequence[Expr]) -> Expr:
        if len(kids) != 1 or n.buffer.dtype.lanes != 1:
            raise NotVectorizable
        buffer, i = self.index(n.buffer, kids[0])
        made = Load(buffer, (i,))
        if self.mask is None or buffer in self.expanded.values() or self._is_inside(i, buffer):
            return made
        if made.dtype.lanes == 1:
            if self.is_first_inside or set(free_vars(i)).isdisjoint(free_vars(self.mask)):
                return made  # the first lane loads it anyhow, or the mask does not affect this load's address
            raise NotVectorizable
        return Select(self.mask, made, const(0, made.dtype))

    def _is_inside(self, i: Expr, buffer: Buffer) -> bool:
        """Answers whether all lanes of *i* certainly lie in *buffer*."""
        if not isinstance(i, Ramp):
            return i.dtype.lanes == 1 and self._is_between(i, i, buffer)
        if not isinstance(i.stride, Const):
            return False
        last = i.base + i.stride * (i.lanes - 1)
        return self._is_between(i.base, last, buffer) if int(i.stride.value) >= 0 else False

    def _is_between(self, first: Expr, last: Expr, buffer: Buffer) -> bool:
        return prove(Le(ZERO, first), self.bounds) and prove(Lt(last, buffer.shape[0]), self.bounds)


def _as_expr(n: Node) -> Expr:
    if not isinstance(n, Expr):
        raise TypeError(f"{type(n).__name__} is no expression")
    return n


def _all(w: Widen, kids: Sequence[Expr]) -> list[Expr]:
    return [broadcast(k, w.lanes) for k in kids]


def _plain(w: Widen, n: Node, kids: Sequence[Expr]) -> Expr:
    return _as_expr(n.rebuild(_all(w, kids)))


def _binary(w: Widen, n: Binary, kids: Sequence[Expr]) -> Expr:
    a, b = kids
    if a.dtype.element is INDEX or a.dtype.element is i32:
        made = _linear(type(n), a, b)
        made = _digit(type(n), a, b, w) if made is None else made
        made = _common_answer(n, a, b) if made is None else made
        if made is not None:
            return made
    if w.mask is not None and isinstance(n, DIVISIONS) and b.dtype.lanes > 1:
        one = broadcast(const(1, b.dtype.element), w.lanes)  # lanes masked off may have zero, and machines stop at that
        return _plain(w, n, [a, Select(w.mask, b, one)])
    return _plain(w, n, kids)


def _linear(op: type[Binary], a: Expr, b: Expr) -> Expr | None:
    """Keeps sums, differences and multiples of ramps in the form of a ramp; returns None for anything else."""
    if op is Sub:
        return _difference(a, b)
    ramp, other = (b, a) if isinstance(b, Ramp) else (a, b)
    if not isinstance(ramp, Ramp):
        return None
    if op is Add and isinstance(other, Ramp):
        return Ramp(other.base + ramp.base, other.stride + ramp.stride, ramp.lanes)
    if other.dtype.lanes != 1:
        return None
    if op is Add:
        return Ramp(ramp.base + other, ramp.stride, ramp.lanes)
    return _multiple(ramp, other) if op is Mul else None


def _difference(a: Expr, b: Expr) -> Expr | None:
    """Returns `a - b` of two ramps, or of a ramp and a scalar, as a ramp; None for others."""
    if isinstance(a, Ramp) and isinstance(b, Ramp):
        return Ramp(a.base - b.base, a.stride - b.stride, a.lanes)
    if isinstance(a, Ramp) and b.dtype.lanes == 1:
        return Ramp(Sub(a.base, b), a.stride, a.lanes)
    if isinstance(b, Ramp) and a.dtype.lanes == 1:
        return Ramp(a - b.base, Neg(b.stride) if not isinstance(b.stride, Const) else ZERO - b.stride, b.lanes)
    return None


def _multiple(a: Expr, b: Expr) -> Expr:
    """Returns *a* times the scalar *b*."""
    return Ramp(a.base * b, a.stride * b, a.lanes) if isinstance(a, Ramp) else a * broadcast(b, a.dtype.lanes)


def _digit(op: type[Binary], a: Expr, b: Expr, w: Widen) -> Expr | None:
    """Splits a run of consecutive numbers that does not cross a multiple of *b*: one quotient, consecutive remainders."""
    if op not in (FloorDiv, FloorMod) or not isinstance(a, Ramp) or a.stride is not ONE or not isinstance(b, Const):
        return None
    divisor = int(b.value)
    if divisor <= 0 or divisor % a.lanes or simplify(a.base % a.lanes, w.bounds) is not ZERO:
        return None
    return a.base // b if op is FloorDiv else Ramp(a.base % b, ONE, a.lanes)


def _common_answer(n: Binary, a: Expr, b: Expr) -> Expr | None:
    """Returns the one answer of all lanes to whether consecutive numbers are below a bound, both of whole vectors; else None."""
    if not isinstance(n, Lt) or not isinstance(a, Ramp) or a.stride is not ONE or b.dtype.lanes != 1:
        return None
    is_whole = known_divisor(a.base) % a.lanes == 0 and known_divisor(b) % a.lanes == 0
    return Lt(a.base, b) if is_whole else None


def _negated(w: Widen, n: Neg, kids: Sequence[Expr]) -> Expr:
    a = kids[0]
    return Ramp(ZERO - a.base, ZERO - a.stride, a.lanes) if isinstance(a, Ramp) and a.dtype.element is INDEX else Neg(a)


def _select(w: Widen, n: Select, kids: Sequence[Expr]) -> Expr:
    then, other = _all(w, kids[1:])
    return Select(kids[0], then, other)


def _apply(w: Widen, n: Apply, kids: Sequence[Expr]) -> Expr:
    return Apply(n.fn, tuple(_all(w, kids)))


def _cast(w: Widen, n: Cast | Reinterpret, kids: Sequence[Expr]) -> Expr:
    return type(n)(kids[0], n.dtype.with_lanes(w.lanes))


def _refuse(w: Widen, n: Node, kids: Sequence[Expr]) -> Expr:
    raise NotVectorizable


_HANDLERS: Final[dict[type[Node], Callable[[Widen, Any, Sequence[Expr]], Expr]]] = {
    Neg: _negated,
    Not: _plain,
    Select: _select,
    Apply: _apply,
    Cast: _cast,
    Reinterpret: _cast,
    Ramp: _refuse,
    Broadcast: _refuse,
    Address: _refuse,
}
