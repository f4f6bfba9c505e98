"""Removes statements that have no effect, and memory that nothing reads.

alloc T[8]                    for i in range(8):
for i in range(8):     ->         C[i] = A[i]
    T[i] = A[i]
    C[i] = A[i]
"""

from __future__ import annotations

from weft.ir import Expr, Node, accesses, free_vars
from weft.loop import (
    NOTHING,
    Address,
    Alloc,
    Buffer,
    Eval,
    For,
    Function,
    If,
    Let,
    Load,
    Program,
    Stmt,
    Store,
    View,
    While,
    own_exprs,
    statements,
    without_moot_notes,
)
from weft.lower.stmt_rewriter import Steps, StmtRewriter, Visited, map_functions


def remove_noops(program: Program) -> Program:
    """Returns *program* without stores to memory that is never read, empty loops, and unused lets and allocations."""
    return map_functions(program, _cleaned)


def _cleaned(function: Function) -> Stmt:
    body = function.body
    while True:
        local = {s.buffer for s in statements(body) if isinstance(s, Alloc)}
        dead = local - _read(body)
        cleaned = _Remove(dead).rewrite(body) if any(_may_go(s, dead) for s in statements(body)) else body
        if cleaned is body:
            return without_moot_notes(function.with_body(body)).body
        body = cleaned


def _may_go(s: Stmt, dead: set[Buffer]) -> bool:
    """Tells whether *s* itself may have no effect; *dead* are the buffers that nothing reads."""
    if isinstance(s, Store | Alloc):
        return s.buffer in dead or (isinstance(s, Store) and isinstance(s.value, Load))
    return s is NOTHING or isinstance(s, Let | View | Eval)


def _read(root: Stmt) -> set[Buffer]:
    """Returns the live buffers: loaded ones, arguments of calls, and sources of views."""
    found: set[Buffer] = set()
    seen: set[Node] = set()
    for s in statements(root):
        if isinstance(s, View):
            found.add(s.source)
        for e in own_exprs(s):
            if e not in seen:
                seen.add(e)
                found |= {n.buffer for n in accesses(e) if isinstance(n, Load | Address)}
    return found


class _Remove(StmtRewriter):
    """Drops statements without effect; `dead` are the buffers that nothing reads."""

    def __init__(self, dead: set[Buffer]) -> None:
        self.dead = dead
        self.used: set[Node | Buffer] = (
            set()
        )  # variables and buffers met so far: their binders are left after their uses

    def expr(self, e: Expr) -> Expr:
        if e not in self.used:
            self.used.add(e)
            self.used.update(free_vars(e))
            self.used.update([n.buffer for n in accesses(e) if isinstance(n, Load | Address)])
        return e

    def visit_store(self, s: Store) -> Visited:
        if s.buffer in self.dead or s.value is Load(s.buffer, s.indices):
            return NOTHING
        self.used.add(s.buffer)
        return super().visit_store(s)

    def visit_alloc(self, s: Alloc) -> Steps:
        body = yield s.body
        return body if s.buffer in self.dead else Alloc(s.buffer, body)

    def visit_for(self, s: For) -> Steps:
        body = yield s.body
        return (
            NOTHING if body is NOTHING else For(s.var, self.expr(s.begin), self.expr(s.extent), s.kind, body, s.notes)
        )

    def visit_while(self, s: While) -> Steps:
        body = yield s.body
        return While(self.expr(s.cond), body)

    def visit_if(self, s: If) -> Steps:
        then = yield s.then
        other = None if s.other is None else (yield s.other)
        if then is NOTHING and (other is None or other is NOTHING):
            return NOTHING
        return If(self.expr(s.cond), then, None if other is NOTHING else other)

    def visit_let(self, s: Let) -> Steps:
        body = yield s.body
        return Let(s.var, self.expr(s.value), body) if s.var in self.used else body

    def visit_view(self, s: View) -> Steps:
        body = yield s.body
        if s.buffer not in self.used:
            return body
        self.used.add(s.source)
        return View(s.buffer, s.source, self.expr(s.offset), body)

    def visit_eval(self, s: Eval) -> Visited:
        return NOTHING
