"""Loads the batch that an iteration of a loop that fetches ahead rounds and stores, or its first one, in the iteration before.

    for k in range(0, 9):                           v = alloc("register", f32[32])
        multiply(k)                                 v[...] = A[0, ...]
        if k < 8:                                   for k in range(0, 9):
            S[...] = bf16x8(A[k, ...])       ->         multiply(k)
                                                        if k < 8:
                                                            S[...] = bf16x8(v[...])
                                                            if k + 1 < 8:
                                                                v[...] = A[k + 1, ...]

A thread waits for no load of that batch then: an iteration is between its loads and its stores, which round. The same registers
take the other batches, which are loaded when the one before is stored.
"""

from __future__ import annotations

from dataclasses import dataclass

from weft.ir import (
    ONE,
    TRUE,
    Broadcast,
    Const,
    Expr,
    Select,
    Var,
    const,
    index,
    rounded_like,
    rounded_operand,
    simplify,
    substitute,
)
from weft.loop import Alloc, Buffer, For, If, LoopKind, Program, Seq, Stmt, loads, seq, stores
from weft.lower.grid.fetch_nests import FetchNest, fetch_nest
from weft.lower.stmt_rewriter import Steps, StmtRewriter, map_functions
from weft.support.dtypes import DType


def load_before(program: Program) -> Program:
    """Returns *program*, with vectors, with loads an iteration earlier in loops that fetch ahead under a condition."""
    return map_functions(program, lambda f: _Earlier().rewrite(f.body))


class _Earlier(StmtRewriter):
    def visit_for(self, s: For) -> Steps:
        body = yield s.body
        loop = For(s.var, s.begin, s.extent, s.kind, body, s.notes)
        return _earlier(loop) or loop


@dataclass(frozen=True)
class _Fetch:
    """A *nest* whose vectors are loaded as *raw* ones of another type, and rounded later, as *rounding* is."""

    nest: FetchNest
    raw: Expr
    rounding: Expr

    def registers(self) -> Buffer:
        return self.nest.registers(self.raw.dtype.element)

    def load(self, registers: Buffer, batch: int, change: dict[Var, Expr]) -> Stmt:
        return self.nest.load(registers, index(batch), simplify(substitute(self.raw, change)))

    def put(self, registers: Buffer, batch: int) -> Stmt:
        return self.nest.put(registers, index(batch), lambda e: rounded_like(self.rounding, e))


def _earlier(loop: For) -> Stmt | None:
    """Returns *loop* with the first batch of its fetch loaded before; None where it has no fetch, or more than one."""
    parts = _parts(loop.body)
    guarded = [p for p in parts if isinstance(p, If) and p.other is None]
    if loop.kind is not LoopKind.SERIAL or len(guarded) != 1:
        return None
    (guard,) = guarded
    found = [(p, fetch) for p in _parts(guard.then) if (fetch := _fetch_of(p)) is not None]
    if len(found) != 1 or _changes(loop, found[0][1].raw):
        return None
    (old, fetch) = found[0]
    registers, others = fetch.registers(), [p for p in _parts(guard.then) if p is not old]
    made = If(guard.cond, seq(*others, *_steady(loop, guard, fetch, registers)), None)
    body = seq(*[made if p is guard else p for p in parts])
    begin = _loaded(guard, fetch, registers, {loop.var: loop.begin})
    return Alloc(registers, seq(begin, For(loop.var, loop.begin, loop.extent, loop.kind, body, loop.notes)))


def _steady(loop: For, guard: If, fetch: _Fetch, registers: Buffer) -> list[Stmt]:
    """Returns the stores of an iteration, its other batches, and the loads of the first batch of the next."""
    batches = [fetch.put(registers, 0)]
    for n in range(1, fetch.nest.batches):
        batches += [fetch.load(registers, n, {}), fetch.put(registers, n)]
    return [*batches, _loaded(guard, fetch, registers, {loop.var: loop.var + ONE})]


def _loaded(guard: If, fetch: _Fetch, registers: Buffer, change: dict[Var, Expr]) -> Stmt:
    """Returns the loads of the first batch of an iteration, if it fetches."""
    cond, load = simplify(substitute(guard.cond, change)), fetch.load(registers, 0, change)
    return load if cond is TRUE else If(cond, load, None)


def _parts(s: Stmt) -> tuple[Stmt, ...]:
    return tuple(s.body) if isinstance(s, Seq) else (s,)


def _changes(loop: For, e: Expr) -> bool:
    """Tells whether a loop stores to memory that *e* reads."""
    return not {x.buffer for x in loads(e)}.isdisjoint(x.buffer for x in stores(loop))


def _fetch_of(s: Stmt) -> _Fetch | None:
    """Returns the fetch that *s* is, if rounding makes zeros of zeros where it selects them."""
    nest = fetch_nest(s)
    rounding = None if nest is None else _rounding(nest.store.value)
    given = None if rounding is None else rounded_operand(rounding)
    if nest is None or rounding is None or given is None:
        return None
    raw = _raw(nest.store.value, rounding, given.dtype)
    return None if raw is None else _Fetch(nest, raw, rounding)


def _rounding(e: Expr) -> Expr | None:
    """Returns the number that *e* rounds, where some conditions hold."""
    while isinstance(e, Select):
        e = e.then
    return None if rounded_operand(e) is None else e


def _raw(e: Expr, rounding: Expr, dtype: DType) -> Expr | None:
    """Returns *e* before it is rounded: the same conditions, and zeros of *dtype*."""
    if e is rounding:
        return rounded_operand(e)
    if isinstance(e, Select):
        then, other = _raw(e.then, rounding, dtype), _raw(e.other, rounding, dtype)
        return None if then is None or other is None else Select(e.cond, then, other)
    value = e.value if isinstance(e, Broadcast) else None
    is_zero = isinstance(value, Const) and not value.value
    return Broadcast(const(0, dtype.element), dtype.lanes) if is_zero else None
