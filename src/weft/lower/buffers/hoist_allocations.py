"""Moves allocations out of loops, so that none is made in every iteration.

    for i in range(8):                     T = alloc("local", f32[4])
        T = alloc("local", f32[4])    ->   for i in range(8):
        ...                                    ...

An allocation stays inside the parallel loop around it, since each thread needs its own, and inside the loop that binds a
variable of its size.
"""

from __future__ import annotations

from weft.ir import Var, free_vars
from weft.loop import Alloc, Buffer, For, Let, LoopKind, Program, Stmt, While, without_moot_notes
from weft.lower.stmt_rewriter import Steps, StmtRewriter, map_functions


def hoist_allocations(program: Program) -> Program:
    """Returns *program* with each allocation outside all loops but parallel ones and those that its size depends on.

    Notes on buffers of a loop's own go with them.
    """
    return map_functions(program, lambda f: without_moot_notes(f.with_body(_Hoist().run(f.body))).body)


class _Hoist(StmtRewriter):
    """Removes allocations and puts them back around the outermost loop that they may leave."""

    def __init__(self) -> None:
        self.taken: list[Buffer] = []
        self.loops = 0

    def run(self, root: Stmt) -> Stmt:
        """Returns *root* with its allocations moved."""
        return self._put(self.rewrite(root), 0)

    def _put(self, s: Stmt, count: int) -> Stmt:
        """Allocates the buffers taken since there were *count* of them around *s*."""
        for b in reversed(self.taken[count:]):
            s = Alloc(b, s)
        del self.taken[count:]
        return s

    def visit_alloc(self, s: Alloc) -> Steps:
        if self.loops == 0:
            body = yield s.body
            return Alloc(s.buffer, body)
        body = yield s.body
        self.taken.append(s.buffer)
        return body

    def visit_for(self, s: For) -> Steps:
        before, depth = len(self.taken), self.loops
        parallel = s.kind in (LoopKind.PARALLEL, LoopKind.BOUND)
        self.loops = 0 if parallel else depth + 1
        body = yield s.body
        self.loops = depth
        if parallel:
            body = self._put(body, before)
        else:
            body = self._keep_those_of(s.var, before, body)
        made: Stmt = For(s.var, s.begin, s.extent, s.kind, body, s.notes)
        return made if depth else self._put(made, before)

    def visit_let(self, s: Let) -> Steps:
        before = len(self.taken)
        body = yield s.body
        return Let(s.var, s.value, self._keep_those_of(s.var, before, body))

    def _keep_those_of(self, v: Var, count: int, body: Stmt) -> Stmt:
        """Allocates around *body* those buffers, taken since there were *count*, whose size depends on *v*."""
        for b in [b for b in self.taken[count:] if any(v in free_vars(x) for x in b.shape)]:
            self.taken.remove(b)
            body = Alloc(b, body)
        return body

    def visit_while(self, s: While) -> Steps:
        before, depth = len(self.taken), self.loops
        self.loops = depth + 1
        body = yield s.body
        self.loops = depth
        made = While(s.cond, body)
        return made if depth else self._put(made, before)
