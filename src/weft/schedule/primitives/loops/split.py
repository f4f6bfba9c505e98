"""`split`: one loop becomes a nest of several.

for i in range(0, 30):                  for i_0 in range(0, 4):
    S(i)                       ->           for i_1 in range(0, 8):
                                                if i_0 * 8 + i_1 < 30: S(i_0 * 8 + i_1)
"""

from __future__ import annotations

import math
from collections.abc import Sequence

from weft.ir import ONE, TRUE, ZERO, Bounds, Expr, Var, ceil_div, index, prove, simplify
from weft.loop import For, Function, LoopKind, for_
from weft.schedule.cursors.primitive import primitive
from weft.schedule.cursors.rebind import rebind
from weft.schedule.cursors.state import Change, LoopRef, refuse
from weft.schedule.cursors.tree import bounds_on, loop_path, replace, the_loop
from weft.schedule.rewriting.loop_chain import check_unannotated


@primitive
def split(fn: Function, loop: LoopRef, factors: Sequence[int | None]) -> tuple[Change, tuple[LoopRef, ...]]:
    """Splits *loop* into nested loops of *factors* iterations, outermost first; one factor may be None, to be inferred.

    Where the factors do not divide the extent, blocks are guarded. Returns the new loops; a reference to the old loop leads
    to the outermost of them.
    """
    path = loop_path(fn, loop)
    old = the_loop(path)
    sizes = _sizes(old, factors, bounds_on(path[:-1], fn))
    made = [Var(f"{old.var.name}_{n}") for n in range(len(sizes))]
    bounds = bounds_on(path[:-1], fn)
    position: Expr = ZERO
    for v, size in zip(made, sizes, strict=True):
        bounds = bounds.bind(v, ZERO, size - ONE)
        position = position * size + v
    inside = simplify(position, bounds) < old.extent
    guard = TRUE if prove(inside, bounds) else inside
    body = rebind(old.body, {old.var: old.begin + position}, bounds, guard)
    for v, size in zip(reversed(made), reversed(sizes), strict=True):
        body = for_(v, size, body)
    change = Change(fn.with_body(replace(path, body)), ((old.var, made[0]),), in_order=True)
    return change, tuple([LoopRef(v) for v in made])


def _sizes(old: For, factors: Sequence[int | None], bounds: Bounds) -> list[Expr]:
    """Checks the factors and infers the one that is None."""
    if old.kind is not LoopKind.SERIAL:
        refuse(f"the loop is {old.kind} already", old, "split before choosing how a loop runs")
    check_unannotated(old)
    if len(factors) < 2 or factors.count(None) > 1:
        refuse("a split takes two or more factors, of which at most one is None", old, "give a list such as [None, 8]")
    if any(f is not None and f < 1 for f in factors):
        refuse(
            f"the factors {list(factors)} are not all positive", old, "a factor is the number of iterations of a loop"
        )
    known = index(math.prod(f for f in factors if f is not None))
    if None not in factors and not prove(old.extent <= known, bounds):
        refuse(f"the factors {list(factors)} cover fewer iterations than the loop has", old, "make one factor None")
    return [simplify(ceil_div(old.extent, known), bounds) if f is None else index(f) for f in factors]
