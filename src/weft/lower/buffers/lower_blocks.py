"""Dissolves blocks into plain statements: axes become their bindings, predicates and inits become conditionals.

    for i in range(8):                                      for i in range(8):
        for k in range(4):                                      for k in range(4):
            with block("C", vi=spatial(8, i), vk=reduce(4, k)):     if k == 0:
                with init():                            ->              C[i] = 0.0
                    C[vi] = 0.0                                     C[i] = C[i] + A[i, k]
                C[vi] = C[vi] + A[vi, vk]

The init runs before the first instance of a reduction: where every reduce axis is zero.
"""

from __future__ import annotations

from weft.ir import TRUE, ZERO, Bounds, Expr, Node, Var, all_of, eq, map_nodes, simplify
from weft.loop import AxisKind, Block, For, Function, If, Program, Stmt, seq
from weft.lower.stmt_rewriter import BoundedRewriter, Steps, map_functions, size_bounds


def lower_blocks(program: Program) -> Program:
    """Returns *program* without blocks."""
    return map_functions(program, dissolve)


def dissolve(function: Function) -> Stmt:
    """Returns the body of *function* without blocks."""
    return _Dissolve(size_bounds(function)).rewrite(function.body)


class _Dissolve(BoundedRewriter):
    """Carries the values of the axes in scope, and the ranges of the loops."""

    def __init__(self, bounds: Bounds) -> None:
        super().__init__(bounds)
        self.values: dict[Node, Node] = {}  # axes to their bindings, and expressions rewritten under them

    def expr(self, e: Expr) -> Expr:
        return map_nodes(e, None, memo=self.values) if self.values else e

    def visit_for(self, s: For) -> Steps:
        begin, extent = self.expr(s.begin), self.expr(s.extent)
        body = yield from self.loop_body(s)
        return For(s.var, begin, extent, s.kind, body, s.notes)

    def visit_block(self, s: Block) -> Steps:
        bindings = [simplify(self.expr(b), self.bounds) for b in s.bindings]
        first = all_of(eq(b, ZERO) for a, b in zip(s.axes, bindings, strict=True) if a.kind is AxisKind.REDUCE)
        predicate = self.expr(s.predicate)
        outer, self.values = self.values, self._inside(s, bindings)
        init = None if s.init is None else (yield s.init)
        body = yield s.body
        self.values = outer
        if init is not None:
            body = seq(guarded(simplify(first, self.bounds), init), body)
        return guarded(simplify(predicate, self.bounds), body)

    def _inside(self, s: Block, bindings: list[Expr]) -> dict[Node, Node]:
        """Returns the values of all axes inside *s*; expressions rewritten outside it are not carried over."""
        known: dict[Node, Node] = {v: e for v, e in self.values.items() if isinstance(v, Var)}
        known.update(zip([a.var for a in s.axes], bindings, strict=True))
        return known


def _keep(n: Node) -> None:
    return None


def guarded(cond: Expr, body: Stmt) -> Stmt:
    """Returns *body* run only where *cond* holds."""
    return body if cond is TRUE else If(cond, body, None)
