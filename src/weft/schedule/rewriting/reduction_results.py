"""Loops over the results of a reduction, for its initialisation or for combining partial results."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from weft.ir import Expr, Var, all_of, conjuncts, substitute
from weft.loop import Axis, AxisKind, Block, For, Stmt, Thread
from weft.schedule.cursors.rebind import uses
from weft.schedule.cursors.state import refuse
from weft.schedule.cursors.tree import Path, loops_on, the_block
from weft.schedule.legality.placement import reduce_loops

Build = Callable[[dict[Var, Var], list[Axis], list[Expr], Expr], Stmt]


def over_results(path: Path, loops: Sequence[For], suffix: str, build: Build) -> Stmt:
    """Returns new loops around the result of *build*, for those of *loops* that the results of the block on *path* depend on.

    *build* is given the new variables of the spatial axes, those axes, their bindings and a guard. The set of results must not
    depend on the loops that the reduction runs over.
    """
    block, reduced = the_block(path), reduce_loops(path)
    kept = [(a, b) for a, b in zip(block.axes, block.bindings, strict=True) if a.kind is AxisKind.SPATIAL]
    guard = _without(block, loops_on(path), reduced)
    repeated = [f for f in loops if f not in reduced and any(uses(e, f.var) for e in (guard, *[b for _, b in kept]))]
    fresh: dict[Var, Expr] = {f.var: Var(f"{f.var.name}{suffix}") for f in repeated}
    variables = {a.var: Var(a.var.name) for a, _ in kept}
    axes = [Axis(variables[a.var], a.extent, a.kind) for a, _ in kept]
    body = build(variables, axes, [substitute(b, fresh) for _, b in kept], substitute(guard, fresh))
    for f in reversed(repeated):
        var = fresh[f.var]
        if isinstance(var, Var):
            extent, begin = substitute(f.extent, fresh), substitute(f.begin, fresh)
            body = For(var, begin, extent, f.kind, body, tuple([n for n in f.notes if isinstance(n, Thread)]))
    return body


def _without(block: Block, loops: Sequence[For], reduced: Sequence[For]) -> Expr:
    """Returns the part of the guard that does not depend on the reduction; refuses one that mixes both."""
    kept: list[Expr] = []
    for c in conjuncts(block.predicate):
        mentioned = [f for f in loops if uses(c, f.var)]
        if not any(f in reduced for f in mentioned):
            kept.append(c)
        elif any(f not in reduced for f in mentioned):
            refuse(
                f"the guard of {block.name} depends on spatial and reduced loops together",
                block,
                "split by factors that divide",
            )
    return all_of(kept)
