"""Trims the bounds of a loop to the iterations in which its body changes any register (Halide's `trim_no_ops`).

    for k in range(0, 3):                                       for k in range(max(0, 1 - i), min(3, 29 - i)):
        for j in unrolled(0, 14):                        ->         for j in unrolled(0, 14):
            C[j] = select(1 <= i + k and i + k < 29,                    C[j] = C[j] + A[i, k, j]
                C[j] + A[i, k, j], C[j])

The bounds depend on the loops outside, so that one body serves the middle and the borders of an image, where `partition_loops`
would make a copy for each. Only sums in registers are looked at, whose tests would be made again and again.
"""

from __future__ import annotations

from functools import reduce

from weft.ir import (
    INDEX,
    ONE,
    ZERO,
    Bounds,
    Expr,
    Le,
    Lt,
    Node,
    Select,
    Var,
    all_of,
    conjuncts,
    free_vars,
    map_nodes,
    maximum,
    minimum,
    poly_of,
    poly_to_expr,
    select,
    simplify,
)
from weft.loop import (
    PREFETCH,
    Alloc,
    Call,
    For,
    If,
    Let,
    Load,
    LoopKind,
    Program,
    Seq,
    Stmt,
    Store,
    bound_vars,
    statements,
)
from weft.lower.stmt_rewriter import BoundedRewriter, Steps, map_functions, size_bounds


def trim_loops(program: Program) -> Program:
    """Returns *program*, whose buffers are flat, with serial loops cut to the iterations that add to sums in registers."""
    return map_functions(program, lambda f: _Trim(size_bounds(f)).rewrite(f.body))


class _Trim(BoundedRewriter):
    def visit_for(self, s: For) -> Steps:
        body = yield from self.loop_body(s)
        made = For(s.var, s.begin, s.extent, s.kind, body, s.notes)
        return _trimmed(made, self.bounds) if s.kind is LoopKind.SERIAL else made


def _trimmed(loop: For, bounds: Bounds) -> For:
    """Returns *loop* without the iterations in which a condition of all its sums fails."""
    found = [(c, limits) for c in _common_conditions(loop.body) if (limits := _limits(c, loop)) is not None]
    if not found:
        return loop
    first = simplify(reduce(maximum, [low for _, (low, _) in found if low is not None], loop.begin), bounds)
    end = simplify(
        reduce(minimum, [high for _, (_, high) in found if high is not None], loop.begin + loop.extent), bounds
    )
    extent = simplify(maximum(end - first, ZERO), bounds)
    return For(loop.var, first, extent, loop.kind, _without(loop.body, {c for c, _ in found}), loop.notes)


def _without(body: Stmt, true: set[Expr]) -> Stmt:
    """Returns *body*, all of whose sums have the conditions *true*, where these hold."""

    def change(n: Node) -> Node | None:
        if not isinstance(n, Select) or not true <= set(conjuncts(n.cond)):
            return None
        return select(all_of(c for c in conjuncts(n.cond) if c not in true), n.then, n.other)

    return map_nodes(body, change)


def _common_conditions(body: Stmt) -> list[Expr]:
    """Returns the conditions without which *body* changes nothing, all of loops outside its own; none where that is not known."""
    found: list[Expr] | None = None
    bound: set[Var] = set()
    for s in statements(body):
        bound.update(bound_vars(s))
        if isinstance(s, Store):
            guards = _guards(s)
            found = guards if found is None else [c for c in found if c in guards]
        elif not isinstance(s, For | Seq | If | Let | Alloc) and not (isinstance(s, Call) and s.callee == PREFETCH):
            return []
        if found is not None and not found:
            return []
    return [c for c in found or [] if bound.isdisjoint(free_vars(c))]


def _guards(s: Store) -> list[Expr]:
    """Returns the conditions without which *s* stores the value that a register holds already."""
    value = s.value
    if not s.buffer.in_registers or not isinstance(value, Select) or value.other is not Load(s.buffer, s.indices):
        return []
    return list(conjuncts(value.cond))


def _limits(c: Expr, loop: For) -> tuple[Expr | None, Expr | None] | None:
    """Returns the first iteration of *loop* for which *c* holds, or the first for which it no longer does, if it is linear."""
    if not isinstance(c, Lt | Le) or c.a.dtype is not INDEX:
        return None
    room = poly_of(c.b - c.a - (ONE if isinstance(c, Lt) else ZERO))  # the condition holds where this is at least 0
    slope = room.pop((loop.var,), 0)
    if not slope or any(loop.var in free_vars(a) for m in room for a in m):
        return None
    rest = poly_to_expr(room, INDEX)
    return ((slope - 1 - rest) // slope, None) if slope > 0 else (None, rest // -slope + ONE)
