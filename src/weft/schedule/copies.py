"""Copies of a loop's body that stand beside it: each runs some of the iterations only."""

from __future__ import annotations

from weft.ir.bounds import Bounds
from weft.ir.expr import FALSE, ONE
from weft.ir.prove import prove
from weft.loop.nodes import NOTHING, AxisKind, Block, For, Stmt
from weft.loop.regions import make_block
from weft.loop.visit import map_stmts, rename_fresh, sub_statements
from weft.schedule.tree import bind_loop, with_child


def copied(body: Stmt, taken: set[str]) -> Stmt:
    """Returns a copy of *body* with variables, buffers and names of blocks of its own, none of them *taken*; takes them."""

    def rename(s: Stmt) -> Stmt | None:
        if not isinstance(s, Block):
            return None
        n = 1
        while f"{s.name}_{n}" in taken:
            n += 1
        name = f"{s.name}_{n}"
        taken.add(name)
        return Block(name, s.axes, s.bindings, s.predicate, s.reads, s.writes, s.init, s.body, s.annotations)

    return map_stmts(rename_fresh(body), rename)


def settled(root: Stmt, bounds: Bounds) -> Stmt:
    """Removes the blocks under *root* that never run, and the initialisation of those that never start a reduction."""
    if isinstance(root, Block):
        return NOTHING if root.predicate is FALSE else _without_init(root, bounds)
    inside = bind_loop(bounds, root) if isinstance(root, For) else bounds
    for child in sub_statements(root):
        new = settled(child, inside)
        if new is not child:
            root = with_child(root, child, new)
    return root


def _without_init(b: Block, bounds: Bounds) -> Block:
    """Returns *b* without its initialisation if no instance is the first of a reduction."""
    combined = [e for a, e in zip(b.axes, b.bindings, strict=True) if a.kind is AxisKind.REDUCE]
    if b.init is None or not any(prove(e >= ONE, bounds) for e in combined):
        return b
    return make_block(b.name, b.axes, b.bindings, b.body, None, b.predicate, b.annotations)
