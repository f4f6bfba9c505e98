"""`fuse`: nested loops become one.

for i in range(0, 4):                   for i_j in range(0, 32):
    for j in range(0, 8):      ->           S(i_j // 8, i_j % 8)
        S(i, j)
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

from weft.ir import ONE, ZERO, Expr, Var
from weft.loop import For, Function, LoopKind, for_
from weft.schedule.cursors.primitive import primitive
from weft.schedule.cursors.rebind import rebind, uses
from weft.schedule.cursors.state import Change, LoopRef, called, refuse
from weft.schedule.cursors.tree import bounds_on, replace
from weft.schedule.rewriting.loop_chain import chain, check_unannotated


@primitive
def fuse(fn: Function, loops: Sequence[LoopRef]) -> tuple[Change, LoopRef]:
    """Fuses *loops*, each directly inside the one before, into one loop over all their iterations.

    Returns the new loop, to which references to any of the old ones lead.
    """
    path, nest = chain(fn, loops)
    if [f.var for f in nest] != [r.var for r in loops]:
        refuse("the loops are not each directly inside the one before", nest[0], "reorder them first")
    _check(nest)
    if len(nest) == 1:
        return Change(fn), loops[0]
    total: Expr = ONE
    for f in nest:
        total = total * f.extent
    var = Var("_".join(f.var.name for f in nest))
    bounds = bounds_on(path[:-1], fn).bind(var, ZERO, total - ONE)
    body = rebind(nest[-1].body, _positions(nest, var), bounds)
    fused = for_(var, total, body)
    return Change(fn.with_body(replace(path, fused)), tuple([(f.var, var) for f in nest]), in_order=True), LoopRef(var)


def _check(nest: Sequence[For]) -> None:
    for outer, inner in pairwise(nest):
        if outer.body is not inner:
            refuse(
                f"there is something else between the loops {called(outer.var)} and {called(inner.var)}",
                outer,
                "move it out of the outer loop first",
            )
    for f in nest:
        if f.kind is not LoopKind.SERIAL:
            refuse(f"the loop {called(f.var)} is {f.kind} already", f, "fuse before choosing how a loop runs")
        check_unannotated(f)
        if any(uses(e, g.var) for e in (f.begin, f.extent) for g in nest):
            refuse(
                f"the range of {called(f.var)} depends on another of the loops",
                f,
                "only loops with fixed ranges can be fused",
            )


def _positions(nest: Sequence[For], var: Var) -> dict[Var, Expr]:
    """Returns each old variable in terms of the fused one; the outermost needs no modulo."""
    values: dict[Var, Expr] = {}
    below: Expr = ONE
    for f in reversed(nest):
        position = var // below if f is nest[0] else (var // below) % f.extent
        values[f.var] = position if f.begin is ZERO else f.begin + position
        below = f.extent * below
    return values
