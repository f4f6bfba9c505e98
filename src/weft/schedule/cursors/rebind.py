"""Rewriting the bindings of blocks when the loops around them change; bodies of blocks never mention loops."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import cast

from weft.ir import ONE, TRUE, Bounds, Expr, Var, all_of, mentions, prove, simplify, substitute
from weft.loop import Alloc, Block, For, Seq, Stmt, sub_statements
from weft.schedule.cursors.state import refuse
from weft.schedule.cursors.tree import with_child


def map_blocks(root: Stmt, change: Callable[[Block], Stmt]) -> Stmt:
    """Replaces each block under *root* (not those inside other blocks) by the result of *change*."""
    if isinstance(root, Block):
        return change(root)
    for child in sub_statements(root):
        new = map_blocks(child, change)
        if new is not child:
            root = with_child(root, child, new)
    return root


def rebind(root: Stmt, values: Mapping[Var, Expr], bounds: Bounds, guard: Expr = TRUE) -> Stmt:
    """Replaces loop variables under *root* by *values*, and adds *guard* to the predicates of its blocks.

    *bounds* must know the new variables. Loops are followed inwards, so that bindings are simplified with all ranges known.
    """
    if isinstance(root, Block):
        bindings = tuple([simplify(substitute(b, values), bounds) for b in root.bindings])
        predicate = simplify(substitute(root.predicate, values), bounds)
        return with_bindings(root, bindings, conjunction([predicate, guard], bounds))
    if isinstance(root, For):
        begin, extent = (simplify(substitute(e, values), bounds) for e in (root.begin, root.extent))
        inner = bounds.bind(root.var, begin, begin + extent - ONE)
        return For(root.var, begin, extent, root.kind, rebind(root.body, values, inner, guard), root.notes)
    if guard is not TRUE and not isinstance(root, Seq | Alloc):
        refuse("a statement outside of any block can't be guarded", root, "use factors that divide the extent")
    changed = [
        rebind(c, values, bounds, guard) if isinstance(c, Stmt) else substitute(c, values) for c in root.children()
    ]
    return cast(Stmt, root.rebuild(changed))


def with_bindings(block: Block, bindings: tuple[Expr, ...], predicate: Expr) -> Block:
    """Returns *block* with other bindings and another predicate."""
    b = block
    return Block(b.name, b.axes, bindings, predicate, b.reads, b.writes, b.init, b.body, b.notes)


def conjunction(conditions: list[Expr], bounds: Bounds) -> Expr:
    """Returns those of *conditions* that are not always true, joined."""
    return all_of([c for c in conditions if c is not TRUE and not prove(c, bounds)])


def uses(e: Expr, var: Var) -> bool:
    """Tells whether *e* mentions *var*."""
    return mentions(e, var)
