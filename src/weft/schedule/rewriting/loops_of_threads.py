"""Statements of kernels that are written as loops over threads: registers numbered by constants, vectors, guards."""

from __future__ import annotations

from collections.abc import Callable

from weft.ir import TRUE, ZERO, Const, Expr, Select, Var, free_vars, index, post_order, select, substitute
from weft.loop import Buffer, For, If, Load, LoopKind, Stmt, Thread, for_, loads, seq, store
from weft.support.dtypes import f32


def has_vectors(e: Expr, v: Var) -> bool:
    """Tells whether *e* is words side by side along *v*, each of several under a condition that is the same for them."""
    if isinstance(e, Select) and v not in free_vars(e.cond):
        return has_vectors(e.then, v) and has_vectors(e.other, v)
    return not any(isinstance(n, Select) or (isinstance(n, Load) and n.dtype.bits != f32.bits) for n in post_order(e))


def vector_store(to: Buffer, at: tuple[Expr, ...], e: Expr, lane: Var, lanes: int) -> Stmt:
    """Stores a vector of so many lanes; conditions are of statements, as not all machines read vectors under one."""
    if isinstance(e, Select):
        return If(e.cond, vector_store(to, at, e.then, lane, lanes), vector_store(to, at, e.other, lane, lanes))
    own = Var("lane")
    return for_(own, lanes, substitute(store(to, at, e), {lane: own}), LoopKind.VECTORIZED)


def vector_load(to: Buffer, at: tuple[Expr, ...], e: Expr, lane: Var, lanes: int) -> Stmt:
    """Loads a vector of so many lanes to the registers at *at*; where conditions select nothing, zeros."""
    own = Var("lane")
    zeros = for_(own, lanes, store(to, (*at, own), 0.0), LoopKind.VECTORIZED)
    return seq(zeros, _where_selected(to, at, e, lane, lanes))


def _where_selected(to: Buffer, at: tuple[Expr, ...], e: Expr, lane: Var, lanes: int) -> Stmt:
    if not isinstance(e, Select):
        return vector_store(to, (*at, lane), e, lane, lanes)
    then = _where_selected(to, at, e.then, lane, lanes)
    is_zero = isinstance(e.other, Const) and e.other.value == 0
    return If(e.cond, then, None if is_zero else _where_selected(to, at, e.other, lane, lanes))


def bound(v: Var, extent: Expr, body: Stmt, axis: str) -> Stmt:
    """Returns *body* for each block or thread along *axis*."""
    return For(v, ZERO, extent, LoopKind.BOUND, body, (Thread(axis),))


def guarded(cond: Expr, body: Stmt) -> Stmt:
    """Returns *body* under a condition, if it is one."""
    return body if cond is TRUE else If(cond, body, None)


def value_where(cond: Expr, value: Expr) -> Expr:
    """Returns *value* where a condition holds, else zero."""
    return value if cond is TRUE else select(cond, value, 0.0)


def each(count: int, body: Callable[[Expr], Stmt]) -> Stmt:
    """Returns *body* for each number below *count*, unrolled: the numbers index registers."""
    if count == 1:
        return body(ZERO)
    v = Var("i")
    return for_(v, count, body(v), LoopKind.UNROLLED)


def in_parts(count: int, most: int, body: Callable[[Expr], Stmt]) -> Stmt:
    """Returns a loop over *count* numbers, of which *most* at a time are written out, or as many as divide them."""
    return in_phases(count, most, lambda n, _: body(n))


def in_phases(count: int, most: int, *phases: Callable[[Expr, Expr], Stmt]) -> Stmt:
    """Returns a loop as `in_parts`, whose numbers at a time go through one of *phases* after another.

    Each gets a number, and its place among those at a time, which indexes registers between phases.
    """
    side = max(n for n in range(1, most + 1) if count % n == 0)
    v = Var("k")

    def written_out(phase: Callable[[Expr, Expr], Stmt]) -> Stmt:
        return each(side, lambda i: phase(v * index(side) + i, i))

    return for_(v, count // side, seq(*map(written_out, phases)))


def moves_last(e: Expr, v: Var) -> bool:
    """Tells whether *v*, not the other index, moves along neighbours in the memory that *e* reads."""
    return any(x.indices and x.indices[-1] is v for x in loads(e))
