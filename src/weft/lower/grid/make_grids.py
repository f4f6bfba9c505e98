"""Puts all computation into grids: of one block, or one thread, where the schedule has bound no loops.

    for i in bound(0, 8, thread="threadIdx.x"):            for b in bound(0, 1, thread="blockIdx.x"):
        C[i] = A[i]                                            for i in bound(0, 8, thread="threadIdx.x"):
    D[0] = C[0]                                    ->              C[i] = A[i]
                                                           for b in bound(0, 1, thread="blockIdx.x"):
                                                               D[0] = C[0]

Code around grids runs on the host: sequences, allocations, conditions and loops, which launch one grid after another.
"""

from __future__ import annotations

from weft.ir import ONE, ZERO, Var
from weft.loop import Assert, Block, Call, Eval, For, LoopKind, Program, Stmt, Store, Thread, While
from weft.lower.analysis.grid_shape import has_grid, is_over_blocks, is_over_threads
from weft.lower.stmt_rewriter import StmtRewriter, Visited, map_functions


def make_grids(program: Program) -> Program:
    """Returns *program* with every statement that touches memory inside a loop over blocks."""
    return map_functions(program, lambda f: _Make().rewrite(f.body))


class _Make(StmtRewriter):
    """Descends to the outermost loop of each grid, and to the statements beside these."""

    def visit(self, s: Stmt) -> Visited:
        if is_over_blocks(s) or isinstance(s, Assert | Eval | Call):
            return s
        if is_over_threads(s) or isinstance(s, Store | Block | While):
            return _in_one_block(s)
        if isinstance(s, For) and not has_grid(s):
            return _in_one_block(s)
        return super().visit(s)


def _in_one_block(s: Stmt) -> Stmt:
    return For(Var("b"), ZERO, ONE, LoopKind.BOUND, s, (Thread("blockIdx.x"),))
