"""Tightens the extent of a loop by the guard around its whole body.

for i in range(0, 16):                for i in range(0, 3):
    if i < 3 and p:          ->           if p:
        S(i)                                  S(i)
"""

from __future__ import annotations

from collections.abc import Iterable

from weft.ir import TRUE, Const, Expr, Le, Lt, all_of, conjuncts, index
from weft.loop import Alloc, Buffer, For, If, LoopKind, Program, buffers_of, statements, stores
from weft.lower.analysis.guard_conditions import uses_registers
from weft.lower.stmt_rewriter import Steps, StmtRewriter, Visited, map_functions
from weft.targets import Target


def tighten_loop_bounds(program: Program, target: Target) -> Program:
    """Returns *program* with loops of constant extent cut to the iterations for which their whole body's guard can hold.

    A vectorized loop over registers keeps whole vectors, and its guard. It is tightened only if all other loops over the same
    registers can be, too: registers are accessed as whole vectors.
    """
    return map_functions(program, lambda f: _Shrink(target).rewrite(f.body))


class _Shrink(StmtRewriter):
    def __init__(self, target: Target) -> None:
        self.target = target
        self.even: set[Buffer] = set()

    def visit_alloc(self, s: Alloc) -> Steps:
        if s.buffer.in_registers:
            loops = [f for f in statements(s.body) if isinstance(f, For) and f.kind is LoopKind.VECTORIZED]
            if len({_length(f) for f in loops if s.buffer in buffers_of(f)}) == 1:
                self.even.add(s.buffer)
        body = yield s.body
        return Alloc(s.buffer, body)

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
            return For(s.var, s.begin, s.extent, s.kind, body, s.notes)
        extent, cond = self._cut(s, inner.cond)
        inner = inner.then if cond is TRUE else If(cond, inner.then, None)
        for b in reversed(local):
            inner = Alloc(b, inner)
        return For(s.var, s.begin, extent, s.kind, inner, s.notes)

    def _cut(self, s: For, cond: Expr) -> tuple[Expr, Expr]:
        """Returns the number of iterations in which *cond* can hold, and the remaining condition to be tested in these."""
        if not isinstance(s.begin, Const) or not isinstance(s.extent, Const):
            return s.extent, cond
        ends = [(c, _end(c, s)) for c in conjuncts(cond)]
        kept = [c for c, end in ends if end is None]
        count = _iterations(s, [end for _, end in ends if end is not None])
        if s.kind is not LoopKind.VECTORIZED or not uses_registers(s.body):
            return index(count), all_of(kept)
        if any(b.in_registers and b not in self.even for b in buffers_of(s.body)):
            return s.extent, cond
        lanes = min(self.target.lanes(x.buffer.dtype.bits) for x in stores(s.body))
        whole = -(-count // lanes) * lanes
        return (index(whole), cond) if whole < int(s.extent.value) else (s.extent, cond)


def _iterations(s: For, ends: Iterable[int]) -> int:
    """Returns how many iterations of a loop of constant extent come before all *ends*."""
    assert isinstance(s.begin, Const)  # _cut asks for it
    assert isinstance(s.extent, Const)
    begin = int(s.begin.value)
    return min([int(s.extent.value), *[max(end - begin, 0) for end in ends]])


def _length(s: For) -> tuple[Expr, int | None]:
    """Returns a loop's extent, and how many iterations the guard around its body leaves of it, None without one."""
    guards = conjuncts(s.body.cond) if isinstance(s.body, If) and s.body.other is None else []
    return s.extent, min([e for c in guards if (e := _end(c, s)) is not None], default=None)


def _end(c: Expr, loop: For) -> int | None:
    """Returns the value of the loop's variable from which on the condition *c* always fails, if there is one."""
    if isinstance(c, Lt | Le) and c.a is loop.var and isinstance(c.b, Const):
        return int(c.b.value) + isinstance(c, Le)
    return None
