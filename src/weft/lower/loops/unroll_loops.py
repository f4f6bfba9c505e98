"""Unrolls the loops of kind `unrolled`, for backends that do not do it themselves.

    for i in unrolled(0, 2):              C[0] = A[0]
        C[i] = A[i]              ->       C[1] = A[1]

Loops of unknown length are left as they are.
"""

from __future__ import annotations

from weft.ir import Const, substitute
from weft.loop import For, LoopKind, Program, Stmt, rename_fresh, seq
from weft.lower.stmt_rewriter import Steps, StmtRewriter, map_functions


def unroll_loops(program: Program) -> Program:
    """Returns *program* with the bodies of unrolled loops repeated."""
    return map_functions(program, lambda f: _Unroll().rewrite(f.body))


class _Unroll(StmtRewriter):
    """Unrolls inner loops first."""

    def visit_for(self, s: For) -> Steps:
        body = yield s.body
        if s.kind is not LoopKind.UNROLLED or not isinstance(s.extent, Const):
            return For(s.var, s.begin, s.extent, s.kind, body, s.notes)
        return seq(*[self._copy(s, body, n) for n in range(int(s.extent.value))])

    def _copy(self, s: For, body: Stmt, n: int) -> Stmt:
        return substitute(rename_fresh(body) if n else body, {s.var: s.begin + n})
