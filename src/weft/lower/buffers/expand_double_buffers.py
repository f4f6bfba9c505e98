"""Gives a loop's double-buffered memory its two copies.

    for i in range(8, double_buffer=T):           alloc T[2, 4]
        alloc T[4]                                for i in range(8):
        for j in range(4):                ->          for j in range(4):
            T[j] = A[i, j]                                T[i % 2, j] = A[i, j]
        ...                                           ...

The notes name buffers that are allocated in the loop, so that they carry no values between iterations. Iterations that run in
parallel have private memory anyway, and keep it.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from weft.ir import Expr, Node, index, map_nodes
from weft.loop import (
    Address,
    Alloc,
    Buffer,
    DoubleBuffer,
    For,
    Load,
    LoopKind,
    Note,
    Program,
    Seq,
    Stmt,
    Store,
    View,
    find_note,
    replace_in_notes,
    seq,
    statements,
    sub_statements,
    with_buffers,
    without_notes,
)
from weft.lower.stmt_rewriter import Steps, StmtRewriter, map_functions

_APART: Final = (LoopKind.PARALLEL, LoopKind.VECTORIZED, LoopKind.BOUND)


def expand_double_buffers(program: Program) -> Program:
    """Returns *program* with two copies of each buffer that a loop's notes name."""
    return map_functions(program, lambda f: _Rotate().rewrite(f.body) if _is_noted(f.body) else f.body)


def _is_noted(body: Stmt) -> bool:
    return any(isinstance(s, For) and find_note(s.notes, DoubleBuffer) is not None for s in statements(body))


class _Rotate(StmtRewriter):
    """Finds noted loops, innermost first."""

    def visit_for(self, s: For) -> Steps:
        body = yield s.body
        named = [n.buffer for n in s.notes if isinstance(n, DoubleBuffer)]
        if not named or s.kind not in (LoopKind.SERIAL, LoopKind.UNROLLED):
            return For(s.var, s.begin, s.extent, s.kind, body, without_notes(s.notes, DoubleBuffer))
        turn = (s.var - s.begin) % index(2)
        old = [b for b in _allocated(body) if b in named]
        new = {b: copies_of(b, 2) for b in old}
        rest = replace_in_notes(without_notes(s.notes, DoubleBuffer), new)
        made: Stmt = For(s.var, s.begin, s.extent, s.kind, in_turn(body, new, turn), rest)
        for b in reversed(old):
            made = Alloc(new[b], made)
        return made


def _allocated(body: Stmt) -> list[Buffer]:
    """Returns the buffers allocated in *body*, without the sources of views, and those in loops that run in parallel."""
    seen = {s.source for s in statements(body) if isinstance(s, View)}
    found: list[Buffer] = []
    stack = [body]
    while stack:
        s = stack.pop()
        if isinstance(s, Alloc) and s.buffer not in seen:
            found.append(s.buffer)
        if not (isinstance(s, For) and s.kind in _APART):
            stack += reversed(sub_statements(s))
    return found


def copies_of(b: Buffer, count: int) -> Buffer:
    """Returns a buffer with *count* copies of *b*, along a new first dimension."""
    if b.strides is None:
        return Buffer(b.name, (count, *b.shape), b.dtype, b.scope)
    outermost = b.strides[0] * b.shape[0]
    return Buffer(b.name, (count, *b.shape), b.dtype, b.scope, (outermost, *b.strides))


def in_turn(body: Stmt, new: Mapping[Buffer, Buffer], turn: Expr) -> Stmt:
    """Returns *body* with the copy numbered *turn* in the place of each buffer that is a key of *new*, which is its copies."""

    def change(n: Node) -> Node | None:
        match n:
            case Load(b, indices) if b in new:
                return Load(new[b], (turn, *indices))
            case Address(b, indices) if b in new:
                return Address(new[b], (turn, *indices))
            case Store(b, indices, value, mask) if b in new:
                return Store(new[b], (turn, *indices), value, mask)
            case Alloc(b, inner) if b in new:
                return inner
            case Note():
                return with_buffers(n, new)
            case Seq(parts) if any(isinstance(p, Seq) for p in parts):
                return seq(*parts)
        return None

    return map_nodes(body, change)
