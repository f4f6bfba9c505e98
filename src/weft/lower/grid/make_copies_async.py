"""Makes the copies that threads wait for asynchronous, where the target has such: of 4, 8 or 16 bytes side by side.

    S[ramp(t * 8, 1, 8)] = A[ramp(k * 256 + t * 8, 1, 8)]   ->   call("weft.copy.async", S.at(t * 8), A.at(k * 256 + t * 8), 8, 1)

The last argument is the condition of a copy, which is one of zeros where it does not hold: that of a statement, or of the value.
Other copies stay as they are: a thread that waits has made them already. A target without asynchronous copies waits for nothing.
"""

from __future__ import annotations

from weft.ir import ONE, TRUE, Expr, Ramp, Select, broadcast, const, index, known_divisor, reads_memory
from weft.loop import (
    ASYNC_COMMIT,
    ASYNC_COPY,
    ASYNC_WAIT,
    NOTHING,
    Address,
    Buffer,
    Call,
    If,
    Load,
    Program,
    Stmt,
    Store,
    statements,
)
from weft.lower.stmt_rewriter import StmtRewriter, Visited, map_functions
from weft.targets import Target
from weft.targets.instructions import ASYNC_COPIES, COPY_BYTES


def make_copies_async(program: Program, target: Target) -> Program:
    """Returns *program* with asynchronous copies, or without the waits for them where the target has none."""
    return map_functions(
        program, lambda f: _Make(_awaited(f.body), has_copies=target.has(ASYNC_COPIES)).rewrite(f.body)
    )


def _awaited(body: Stmt) -> set[Buffer]:
    """Returns the buffers that threads wait for."""
    waits = [s for s in statements(body) if isinstance(s, Call) and s.callee == ASYNC_WAIT]
    return {a.buffer for s in waits for a in s.args if isinstance(a, Address)}


class _Make(StmtRewriter):
    """Changes stores and calls; expressions stay."""

    def __init__(self, awaited: set[Buffer], *, has_copies: bool) -> None:
        self.awaited = awaited
        self.has_copies = has_copies

    def visit_store(self, s: Store) -> Visited:
        if isinstance(s.value, Select) and s.value.cond.dtype.lanes == 1 and s.value.other is const(0, s.value.dtype):
            made = Store(s.buffer, s.indices, s.value.then, s.mask)
            copied = self.copy(made, s.value.cond)
            return s if copied is made else copied
        return self.copy(s, TRUE)

    def visit_if(self, s: If) -> Visited:
        """Makes a store and, where its condition does not hold, one of zeros, a copy under that condition."""
        made = s.then
        if isinstance(made, Store) and not reads_memory(s.cond) and s.other is _of_zeros(made):
            made = self.copy(made, s.cond)
        return super().visit_if(s) if made is s.then else made

    def copy(self, s: Store, holds: Expr) -> Stmt:
        """Returns the copy that a store makes where a condition holds; the store where it is none."""
        if not self.has_copies or s.buffer not in self.awaited or s.mask is not None or not isinstance(s.value, Load):
            return s
        lanes, size = s.value.dtype.lanes, s.buffer.dtype.bytes
        to, source = [_begin(x.indices, lanes) for x in (s, s.value)]
        if to is None or source is None or lanes * size not in COPY_BYTES:
            return s
        return Call(ASYNC_COPY, (Address(s.buffer, (to,)), Address(s.value.buffer, (source,)), index(lanes), holds))

    def visit_call(self, s: Call) -> Visited:
        return NOTHING if s.callee in (ASYNC_COMMIT, ASYNC_WAIT) and not self.has_copies else s


def _of_zeros(s: Store) -> Store:
    zero, lanes = const(0, s.buffer.dtype), s.value.dtype.lanes
    return Store(s.buffer, s.indices, zero if lanes == 1 else broadcast(zero, lanes), s.mask)


def _begin(indices: tuple[Expr, ...], lanes: int) -> Expr | None:
    """Returns where elements of a flat buffer that lie side by side begin, at a multiple of their number; None for others."""
    if lanes == 1:
        return indices[0]
    if not isinstance(indices[0], Ramp) or indices[0].stride is not ONE:
        return None
    base = indices[0].base
    return base if known_divisor(base) % lanes == 0 else None
