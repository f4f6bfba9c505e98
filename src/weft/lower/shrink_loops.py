"""Ends a loop where the guard around its whole body ends it.

for i in range(0, 16):                for i in range(0, 3):
    if i < 3 and p:          ->           if p:
        S(i)                                  S(i)
"""

from __future__ import annotations

from weft.ir.expr import TRUE, Const, Expr, Le, Lt, all_of, conjuncts, index
from weft.loop.nodes import Alloc, Buffer, For, If, LoopKind, Program
from weft.lower.guards import uses_registers
from weft.lower.walk import Steps, StmtRewriter, Visited, map_functions


def shrink_loops(program: Program) -> Program:
    """Returns *program* with loops of constant extent cut to the iterations for which their whole body's guard can hold."""
    return map_functions(program, lambda f: _Shrink().rewrite(f.body))


class _Shrink(StmtRewriter):
    def visit_for(self, s: For) -> Visited:
        """Cuts a loop, the inner ones first."""
        return self._shrunk(s)

    def _shrunk(self, s: For) -> Steps:
        body = yield s.body
        local: list[Buffer] = []
        inner = body
        while isinstance(inner, Alloc):
            local.append(inner.buffer)
            inner = inner.body
        if not isinstance(inner, If) or inner.other is not None:
            return For(s.var, s.begin, s.extent, s.kind, body, s.annotations)
        extent, cond = _cut(s, inner.cond)
        inner = inner.then if cond is TRUE else If(cond, inner.then, None)
        for b in reversed(local):
            inner = Alloc(b, inner)
        return For(s.var, s.begin, extent, s.kind, inner, s.annotations)


def _cut(s: For, cond: Expr) -> tuple[Expr, Expr]:
    """Returns the number of iterations in which *cond* can hold, and what is left of it to be tested in these."""
    if not isinstance(s.begin, Const) or not isinstance(s.extent, Const):
        return s.extent, cond
    if s.kind is LoopKind.VECTORIZED and uses_registers(s.body):
        return s.extent, cond
    begin, count = int(s.begin.value), int(s.extent.value)
    kept: list[Expr] = []
    for c in conjuncts(cond):
        end = _end(c, s)
        count = count if end is None else min(count, max(end - begin, 0))
        kept += [c] if end is None else []
    return index(count), all_of(kept)


def _end(c: Expr, loop: For) -> int | None:
    """Returns the first value of the loop's variable for which the condition *c* fails for good, if it says so."""
    if isinstance(c, Lt | Le) and c.a is loop.var and isinstance(c.b, Const):
        return int(c.b.value) + isinstance(c, Le)
    return None
