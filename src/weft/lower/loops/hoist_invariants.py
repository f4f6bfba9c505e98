"""Moves loop-invariant lets and conditions out of loops (LICM), and peels statements that only the first iteration runs.

    for k in range(16):                        C[i] = 0.0
        if k == 0:                    ->       for k in range(16):
            C[i] = 0.0                             C[i] = C[i] + A[k]
        C[i] = C[i] + A[k]

Lets and whole-body conditions that do not depend on the loop move out. Invariant values inside expressions are left to the
code generator.
"""

from __future__ import annotations

from weft.ir import (
    FALSE,
    ONE,
    TRUE,
    ZERO,
    Bounds,
    Div,
    Expr,
    FloorDiv,
    FloorMod,
    TruncDiv,
    TruncMod,
    free_vars,
    post_order,
    prove,
    simplify,
    substitute,
)
from weft.loop import For, If, Let, Load, LoopKind, Program, Seq, Stmt, loads, may_write, seq
from weft.lower.stmt_rewriter import BoundedRewriter, Steps, map_functions, size_bounds


def hoist_invariants(program: Program) -> Program:
    """Returns *program* without invariant lets and conditions, and statements of first iterations only, inside loops."""
    return map_functions(program, lambda f: _Hoist(size_bounds(f)).rewrite(f.body))


class _Hoist(BoundedRewriter):
    """Looks at each loop after those inside it, so that a statement may move out of several."""

    def visit_for(self, s: For) -> Steps:
        body = yield from self.loop_body(s)
        return _hoisted(For(s.var, s.begin, s.extent, s.kind, body, s.notes), self.bounds)


def _hoisted(loop: For, bounds: Bounds) -> Stmt:
    """Returns *loop*, behind the statements moved out of it."""
    body = loop.body
    if isinstance(body, Let) and _is_free(body.value, loop):
        return Let(body.var, body.value, _hoisted(_with(loop, body.body), bounds))
    if isinstance(body, If) and body.other is None and _is_free(body.cond, loop):
        return If(body.cond, _hoisted(_with(loop, body.then), bounds), None)
    if isinstance(body, Seq) and body.body and isinstance(body.body[0], If):
        first = _only_first(body.body[0], loop, bounds)
        if first is not None:
            return seq(first, _with(loop, seq(*body.body[1:])))
    return loop


def _with(loop: For, body: Stmt) -> For:
    return For(loop.var, loop.begin, loop.extent, loop.kind, body, loop.notes)


def _is_free(e: Expr, loop: For) -> bool:
    """Answers whether *e* may be computed before *loop*: it has the same value there, and cannot fail."""
    if loop.var in free_vars(e):
        return False
    return not any(isinstance(n, Load | Div | FloorDiv | FloorMod | TruncDiv | TruncMod) for n in post_order(e))


def _only_first(s: If, loop: For, bounds: Bounds) -> Stmt | None:
    """Returns the part of *s*, the first statement of *loop*, that runs in the first iteration, if *s* does nothing in others."""
    if s.other is not None or loop.kind in (LoopKind.PARALLEL, LoopKind.BOUND) or loop.var not in free_vars(s.cond):
        return None
    later = bounds.bind(loop.var, loop.begin + ONE, loop.begin + loop.extent - ONE)
    if simplify(s.cond, later) is not FALSE or _is_changed(s.cond, loop.body):
        return None
    at_first = {loop.var: loop.begin}
    cond = simplify(substitute(s.cond, at_first), bounds)
    once = substitute(s.then, at_first)
    if not prove(loop.extent > ZERO, bounds):
        cond = simplify((loop.extent > ZERO) & cond, bounds)
    return once if cond is TRUE else If(cond, once, None)


def _is_changed(cond: Expr, body: Stmt) -> bool:
    """Answers whether *body* writes memory that *cond* reads."""
    return may_write(body, {n.buffer for n in loads(cond)})
