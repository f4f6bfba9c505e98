"""Computes divisions by sizes once for each iteration of the loop that they depend on, not at each use (LICM).

for t in range(0, 4 * m):                    for t in range(0, 4 * m):
    for k in range(0, 9):           ->           q = let(t // m)
        B[t // m] = B[t // m] + A[t, k]          for k in range(0, 9):
                                                     B[q] = B[q] + A[t, k]

They come from fused loops whose extents are known only at run time. A division takes some twenty cycles, and code generators do
not move it: the divisor might be zero. Here it is known to be positive.
"""

from __future__ import annotations

from weft.ir import (
    INDEX,
    ZERO,
    Bounds,
    Const,
    Expr,
    FloorDiv,
    FloorMod,
    Node,
    Var,
    free_vars,
    map_nodes,
    post_order,
    prove,
)
from weft.loop import For, Function, Let, LoopKind, Program, Stmt, bound_vars, own_exprs, statements
from weft.lower.stmt_rewriter import BoundedRewriter, Steps, map_functions, size_bounds


def hoist_divisions(program: Program) -> Program:
    """Returns *program* with lets for quotients and remainders by sizes; to be used once loops are vectorized."""
    return map_functions(program, _named)


def _named(fn: Function) -> Stmt:
    if not any(isinstance(p, Var) for p in fn.params):
        return fn.body
    return _Name(size_bounds(fn)).rewrite(fn.body)


class _Name(BoundedRewriter):
    def visit_for(self, s: For) -> Steps:
        body = yield from self.loop_body(s)
        if s.kind is not LoopKind.UNROLLED:
            for e in _divisions(body, s.var, self.bounds):
                var = Var("q" if isinstance(e, FloorDiv) else "r", INDEX)
                named: dict[Node, Node] = {e: var}
                body = Let(var, e, map_nodes(body, None, memo=named))
        return For(s.var, s.begin, s.extent, s.kind, body, s.notes)


def _divisions(body: Stmt, var: Var, bounds: Bounds) -> list[Expr]:
    """Returns the divisions in *body* of expressions of *var* by a positive size that depend on no loop inside.

    A division that contains others comes before them, so that their lets are around its own.
    """
    inside = {v for t in statements(body) for v in bound_vars(t)}
    found: dict[Expr, None] = {}
    for t in statements(body):
        for e in own_exprs(t):
            for n in post_order(e):
                if isinstance(n, FloorDiv | FloorMod) and n.dtype is INDEX and not isinstance(n.b, Const):
                    used = free_vars(n)
                    if var in used and inside.isdisjoint(used) and prove(n.b > ZERO, bounds):
                        found[n] = None
    return list(reversed(found))
