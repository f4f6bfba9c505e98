"""`reorder`: nested loops change places.

for i in range(0, 4):                   for j in range(0, 8):
    for j in range(0, 8):      ->           for i in range(0, 4):
        S(i, j)                                 S(i, j)
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from itertools import pairwise

from weft.ir import ONE, Var
from weft.loop import AxisKind, Block, For, Function, Stmt
from weft.schedule.cursors.primitive import primitive
from weft.schedule.cursors.rebind import uses
from weft.schedule.cursors.state import Change, LoopRef, called, refuse
from weft.schedule.cursors.tree import Path, loops_on, paths, replace, the_block
from weft.schedule.legality.bijection import is_injective, starts_first
from weft.schedule.legality.flow_dependence import Uses, check_structured, uncovered_read, uses_under
from weft.schedule.legality.loop_carried import reordered_read
from weft.schedule.legality.trust import is_trusted
from weft.schedule.rewriting.loop_chain import chain


@primitive
def reorder(fn: Function, loops: Sequence[LoopRef]) -> tuple[Change, None]:
    """Permutes *loops* into the order given; loops between them that are not named keep their positions.

    Legal for loops nested in one another with nothing else between, whose blocks have spatial and reduce axes only (in any order:
    a reducer is commutative), or ordered axes that keep their order.
    """
    path, nest = chain(fn, loops)
    for outer, inner in pairwise(nest):
        if outer.body is not inner:
            refuse(
                f"there is something else between the loops {called(outer.var)} and {called(inner.var)}",
                outer,
                "move it out of the outer loop first",
            )
    by_var = {f.var: f for f in nest}
    wanted = iter([by_var[r.var] for r in loops])
    named = {r.var for r in loops}
    order = [next(wanted) if f.var in named else f for f in nest]
    _check_extents(order)
    if _moving(order) == _moving(nest):
        return Change(fn.with_body(replace(path, _nested(order, nest[-1].body)))), None
    _check_blocks(fn, path, nest, order)
    kept = next((n for n, (a, b) in enumerate(zip(nest, order, strict=True)) if a is not b), len(nest))
    _check_flow(fn, (*path[:-1], *nest), {f.var for f in (*loops_on(path), *nest[:kept])})
    return Change(fn.with_body(replace(path, _nested(order, nest[-1].body)))), None


def _moving(loops: Sequence[For]) -> list[For]:
    """Returns those of *loops* that run more than once: the positions of the others make no difference."""
    return [f for f in loops if f.extent is not ONE]


def _nested(loops: Sequence[For], body: Stmt) -> Stmt:
    """Returns *loops* around *body*, outermost first."""
    for f in reversed(loops):
        body = For(f.var, f.begin, f.extent, f.kind, body, f.notes)
    return body


def _check_extents(order: Sequence[For]) -> None:
    """Refuses an order in which a loop's range would mention a loop inside it."""
    for n, f in enumerate(order):
        for inner in order[n + 1 :]:
            if uses(f.extent, inner.var) or uses(f.begin, inner.var):
                refuse(
                    f"the range of {called(f.var)} depends on {called(inner.var)}, which must stay outside it",
                    f,
                    "leave the loops in this order",
                )


def _check_blocks(fn: Function, path: Path, old: Sequence[For], new: Sequence[For]) -> None:
    """Refuses an order that would violate a dependence between a block's instances."""
    for below in paths(old[-1].body):
        if not isinstance(below[-1], Block):
            continue
        whole = (*path[:-1], *old, *below)
        block = the_block(whole)
        fixed = _fixed_loops(whole)
        kept = [f.var for f in old if f in fixed]
        if kept != [f.var for f in new if f.var in kept]:
            refuse(
                f"the block {block.name} must run in the order of {', '.join(v.name for v in kept)}",
                block,
                "leave these loops in their order",
            )
        reduces = any(a.kind is AxisKind.REDUCE for a in block.axes)
        if reduces and not is_trusted() and not is_injective(fn, whole, old[0]):
            refuse(f"the block {block.name} may combine a value twice", block, "leave the loop that repeats it outside")


def _fixed_loops(path: Path) -> list[For]:
    """Returns the loops that must keep their order for the block at the end of *path*.

    They are those of ordered and opaque axes, and those of a reduction that does not start in their first iteration in any order:
    its initialisation must come first.
    """
    block = the_block(path)
    kinds = {AxisKind.ORDERED, AxisKind.OPAQUE}
    if block.init is not None and not starts_first(path):
        kinds.add(AxisKind.REDUCE)
    bound = [b for a, b in zip(block.axes, block.bindings, strict=True) if a.kind in kinds]
    return [f for f in loops_on(path) if any(uses(b, f.var) for b in bound)]


def _check_flow(fn: Function, path: Path, around: Collection[Var]) -> None:
    """Refuses blocks of which one may use results of another from another iteration."""
    check_structured(path[-1])
    for buffer, found in uses_under(path).items():
        unfed = uncovered_read(fn, found, around)
        if unfed is not None and found.writes:
            refuse(
                f"{unfed.block.name} may use what another iteration writes to {buffer.name}",
                unfed.block,
                "leave the loop between the two where it is, or compute it where it is used",
            )
        for r in found.own_reads:
            early = reordered_read(fn, Uses(found.writes, (), (r,)), around, _fixed_loops(r.path))
            if early is not None:
                refuse(
                    f"{early.block.name} may read {buffer.name} before the instance that writes it",
                    early.block,
                    "leave the loops over steps outside",
                )
