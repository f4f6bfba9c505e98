"""Makes the copies that threads wait for asynchronous, where the target has such: of 4, 8 or 16 bytes side by side.

    S[ramp(t * 8, 1, 8)] = A[ramp(k * 256 + t * 8, 1, 8)]   ->   call("weft.copy.async", S.at(t * 8), A.at(k * 256 + t * 8), 8)

and a value that is zero unless a condition holds has that as the fourth argument.

Other copies stay as they are: a thread that waits has made them already. A target without asynchronous copies waits for nothing.
"""

from __future__ import annotations

from weft.ir import ONE, Expr, Ramp, Select, const, index, known_divisor
from weft.loop import (
    ASYNC_COMMIT,
    ASYNC_COPY,
    ASYNC_WAIT,
    NOTHING,
    Address,
    Buffer,
    Call,
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
    """Returns *program* with asynchronous copies, or without what waits for them."""
    return map_functions(program, lambda f: _Make(_awaited(f.body), target.has(ASYNC_COPIES)).rewrite(f.body))


def _awaited(body: Stmt) -> set[Buffer]:
    """Returns the buffers that threads wait for."""
    waits = [s for s in statements(body) if isinstance(s, Call) and s.callee == ASYNC_WAIT]
    return {a.buffer for s in waits for a in s.args if isinstance(a, Address)}


class _Make(StmtRewriter):
    """Changes stores and calls; expressions stay."""

    def __init__(self, awaited: set[Buffer], has_copies: bool) -> None:
        self.awaited = awaited
        self.has_copies = has_copies

    def visit_store(self, s: Store) -> Visited:
        read, condition = _filled(s.value)
        if not self.has_copies or s.buffer not in self.awaited or s.mask is not None or read is None:
            return s
        lanes, size = read.dtype.lanes, s.buffer.dtype.bytes
        to, source = [_begin(x.indices, lanes) for x in (s, read)]
        if to is None or source is None or lanes * size not in COPY_BYTES:
            return s
        return Call(ASYNC_COPY, (Address(s.buffer, (to,)), Address(read.buffer, (source,)), index(lanes), *condition))

    def visit_call(self, s: Call) -> Visited:
        return NOTHING if s.callee in (ASYNC_COMMIT, ASYNC_WAIT) and not self.has_copies else s


def _filled(value: Expr) -> tuple[Load | None, tuple[Expr, ...]]:
    """Returns what is loaded, and the condition, if there is one, without which it is zero; nothing for another value."""
    if isinstance(value, Select) and value.cond.dtype.lanes == 1 and value.other is const(0, value.dtype):
        return value.then if isinstance(value.then, Load) else None, (value.cond,)
    return value if isinstance(value, Load) else None, ()


def _begin(indices: tuple[Expr, ...], lanes: int) -> Expr | None:
    """Returns where elements of a flat buffer that lie side by side begin, at a multiple of their number; None for others."""
    if lanes == 1:
        return indices[0]
    if not isinstance(indices[0], Ramp) or indices[0].stride is not ONE:
        return None
    base = indices[0].base
    return base if known_divisor(base) % lanes == 0 else None
