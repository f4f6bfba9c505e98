"""Makes the updates of blocks with unordered axes atomic operations, since threads may update one element at once.

    with block("y", vp=unordered(k, p), vj=spatial(m, j)):          with block("y", vp=unordered(k, p), vj=spatial(m, j)):
        y[t[vp], vj] = y[t[vp], vj] + u[vp, vj]             ->          call("weft.atomic.add", y.at(t[vp], vj), u[vp, vj])

A store that does not read the element stays as it is: the formula sees to it that one update alone writes there.
"""

from __future__ import annotations

from functools import partial
from typing import Final

from weft.ir import Binary, Expr
from weft.loop import (
    ATOMICS,
    Address,
    AxisKind,
    Block,
    Call,
    For,
    Function,
    Load,
    LoopKind,
    Program,
    Stmt,
    Store,
    loads,
    map_stmts,
    statements,
)
from weft.lower.stmt_rewriter import map_functions
from weft.support.errors import LoweringError
from weft.targets import Target

_CALLEES: Final[dict[type[Expr], str]] = {update: name for name, update in ATOMICS.items()}


def make_updates_atomic(program: Program, target: Target) -> Program:
    """Returns *program* with atomic updates; raises `LoweringError` for those that *target* has no atomic operation for."""
    return map_functions(program, lambda f: _atomic(f, target))


def _atomic(function: Function, target: Target) -> Stmt:
    def change(s: Stmt) -> Stmt | None:
        if not isinstance(s, Block) or not any(a.kind is AxisKind.UNORDERED for a in s.axes):
            return None
        body = map_stmts(s.body, partial(_update, s, target))
        return Block(s.name, s.axes, s.bindings, s.predicate, s.reads, s.writes, s.init, body, s.notes)

    vectors = [s for s in statements(function.body) if isinstance(s, For) and s.kind is LoopKind.VECTORIZED]
    for s in vectors:
        if any(change(x) is not None for x in statements(s.body)):
            raise LoweringError(
                f"the loop {s.var.name} makes vectors of atomic updates", hint="leave it serial, or bind it"
            )
    return map_stmts(function.body, change)


def _update(block: Block, target: Target, s: Stmt) -> Stmt | None:
    """Returns the atomic operation in the place of a store that updates an element."""
    if not isinstance(s, Store):
        return None
    own, value = Load(s.buffer, s.indices), s.value
    if not _reads(value, s):
        return None
    callee = _CALLEES.get(type(value))
    sides = [value.a, value.b] if callee is not None and isinstance(value, Binary) else []
    other = next((x for x in reversed(sides) if x is not own), None)
    if callee is None or own not in sides or other is None or _reads(other, s):
        raise _error(
            block, s, "by an operation that has no atomic one", "add, multiply, or take the least or the greatest"
        )
    if not target.has_atomics(s.buffer.dtype):
        raise _error(
            block, s, f"of {s.buffer.dtype}, which {target.name} has no atomic operations on", "keep its axes ordered"
        )
    return Call(callee, (Address(s.buffer, s.indices), other))


def _reads(e: Expr, s: Store) -> bool:
    return any(x.buffer is s.buffer for x in loads(e))


def _error(block: Block, s: Store, told: str, hint: str) -> LoweringError:
    return LoweringError(f"{block.name} updates elements of {s.buffer.name} {told}", hint=hint)
