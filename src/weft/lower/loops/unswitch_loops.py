"""Loop unswitching: moves a loop-invariant condition out of a loop, with a version of the loop for each of its two values.

    for j in range(0, 64):                          if 0 < i:
        C[i, j] = select(0 < i, A[j], 0.0)              for j in range(0, 64):
                                            ->              C[i, j] = A[j]
                                                    else:
                                                        for j in range(0, 64):
                                                            C[i, j] = 0.0

Only the invariant part of a condition moves out; the rest stays in the first version. The code grows, so large bodies are left
alone.
"""

from __future__ import annotations

from typing import Annotated

from weft.cost import MOST_UNSWITCHED, code_budget
from weft.ir import (
    SELECTS,
    TRUE,
    Expr,
    Node,
    Select,
    Var,
    all_of,
    conjuncts,
    free_vars,
    map_nodes,
    nodes_with,
    reads_memory,
)
from weft.loop import (
    NOTHING,
    For,
    If,
    LoopKind,
    Program,
    Stmt,
    bound_vars,
    own_exprs,
    rename_fresh,
    statements,
)
from weft.lower.analysis.guard_conditions import Guards, stores_in
from weft.lower.stmt_rewriter import Steps, StmtRewriter, map_functions
from weft.targets import Target


def unswitch_loops(
    program: Program,
    target: Target,
    *,
    depth: Annotated[int, "conditions taken out of one loop, each of which doubles it"] = MOST_UNSWITCHED,
) -> Program:
    """Returns *program* with conditions taken out of the loops that they are invariant in."""
    return map_functions(program, lambda f: _Unswitch(code_budget(target).unswitched_body, depth).rewrite(f.body))


class _Unswitch(StmtRewriter):
    """Looks at outer loops first, so that a condition leaves all loops that it can."""

    def __init__(self, largest_body: int, most: int) -> None:
        self.largest_body = largest_body
        self.most = most
        self.guards = Guards()
        self.depth = 0

    def visit_for(self, s: For) -> Steps:
        cond = self._invariant(s)
        if cond is TRUE:
            body = yield s.body
            return For(s.var, s.begin, s.extent, s.kind, body, s.notes)
        self.depth += 1
        holds = yield _decide(s, cond, value=True)
        fails = yield rename_fresh(_decide(s, cond, value=False))
        self.depth -= 1
        return If(cond, holds, None if fails is NOTHING else fails)

    def _invariant(self, s: For) -> Expr:
        """Returns the invariant part of the first guard in *s* that has one; `true` if none is worth a copy."""
        if s.kind is not LoopKind.SERIAL or self.depth >= self.most:
            return TRUE
        parts = self.guards.of(s.body)
        if not parts or stores_in(s.body) > self.largest_body:
            return TRUE
        bound = {s.var, *_bound_in(s.body)}
        return next((c for g in _conditions(s.body) if (c := _constant_part(g, bound)) is not TRUE), TRUE)


def _bound_in(s: Stmt) -> set[Var]:
    return {v for t in statements(s) for v in bound_vars(t)}


def _conditions(body: Stmt) -> list[Expr]:
    """Returns the conditions of the ifs and selects in *body*, in order."""
    found: dict[Expr, None] = {}
    for t in statements(body):
        if isinstance(t, If):
            found[t.cond] = None
        for e in own_exprs(t):
            found.update(dict.fromkeys(n.cond for n in nodes_with(SELECTS, e) if isinstance(n, Select)))
    return list(found)


def _constant_part(cond: Expr, bound: set[Var]) -> Expr:
    """Returns the comparisons in the conjunction *cond* that no variable in *bound* changes."""
    return all_of(
        c for c in conjuncts(cond) if c.dtype.lanes == 1 and bound.isdisjoint(free_vars(c)) and not reads_memory(c)
    )


def _decide(s: For, cond: Expr, *, value: bool) -> Stmt:
    """Returns *s* where *cond*, a part of conjunctions in it, is known."""
    parts = set(conjuncts(cond))

    def change(n: Node) -> Node | None:
        if not isinstance(n, Select | If) or not parts <= set(conjuncts(n.cond)):
            return None
        if value:
            rest = all_of(c for c in conjuncts(n.cond) if c not in parts)
            if isinstance(n, Select):
                return n.then if rest is TRUE else Select(rest, n.then, n.other)
            return n.then if rest is TRUE else If(rest, n.then, n.other)
        return n.other if n.other is not None else NOTHING

    return map_nodes(s, change)
