"""Copies of a loop's body beside it, each for some of the iterations only."""

from __future__ import annotations

from weft.ir import FALSE, ONE, Bounds, prove
from weft.loop import NOTHING, AxisKind, Block, For, Stmt, make_block, map_stmts, rename_fresh, sub_statements
from weft.schedule.cursors.tree import bind_loop, with_child


def loop_copy(body: Stmt, taken: set[str]) -> Stmt:
    """Returns a copy of *body* with fresh variables, buffers and names of blocks; adds these names to *taken*."""

    def rename(s: Stmt) -> Stmt | None:
        if not isinstance(s, Block):
            return None
        n = 1
        while f"{s.name}_{n}" in taken:
            n += 1
        name = f"{s.name}_{n}"
        taken.add(name)
        return Block(name, s.axes, s.bindings, s.predicate, s.reads, s.writes, s.init, s.body, s.notes)

    return map_stmts(rename_fresh(body), rename)


def relegalized_copy(root: Stmt, bounds: Bounds) -> Stmt:
    """Removes the blocks under *root* that never run, and the `init` of those that never run a reduction's first instance."""
    if isinstance(root, Block):
        return NOTHING if root.predicate is FALSE else _without_init(root, bounds)
    inside = bind_loop(bounds, root) if isinstance(root, For) else bounds
    for child in sub_statements(root):
        new = relegalized_copy(child, inside)
        if new is not child:
            root = with_child(root, child, new)
    return root


def _without_init(b: Block, bounds: Bounds) -> Block:
    """Returns *b* without its initialisation if no instance is the first of a reduction."""
    combined = [e for a, e in zip(b.axes, b.bindings, strict=True) if a.kind is AxisKind.REDUCE]
    if b.init is None or not any(prove(e >= ONE, bounds) for e in combined):
        return b
    return make_block(b.name, b.axes, b.bindings, b.body, None, b.predicate, b.notes)
