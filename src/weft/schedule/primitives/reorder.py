"""`reorder`: nested loops change places.

for i in range(0, 4):                   for j in range(0, 8):
    for j in range(0, 8):      ->           for i in range(0, 4):
        S(i, j)                                 S(i, j)
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

from weft.loop.nodes import AxisKind, Block, For, Function, Stmt
from weft.schedule.chain import chain
from weft.schedule.primitive import primitive
from weft.schedule.rebind import uses
from weft.schedule.state import Change, LoopRef, refuse
from weft.schedule.tree import outer_blocks_in, replace


@primitive
def reorder(fn: Function, loops: Sequence[LoopRef]) -> tuple[Change, None]:
    """Puts *loops* in the order given, in the places that they take now; loops between them that are not named stay.

    Legal for loops nested in one another with nothing else between, whose blocks have spatial and reduce axes only (in any order:
    a reducer is commutative), or ordered axes that keep their order.
    """
    path, nest = chain(fn, loops)
    for outer, inner in pairwise(nest):
        if outer.body is not inner:
            refuse(f"there is something else between the loops {outer.var.name} and {inner.var.name}", outer)
    by_var = {f.var: f for f in nest}
    wanted = iter([by_var[r.var] for r in loops])
    named = {r.var for r in loops}
    order = [next(wanted) if f.var in named else f for f in nest]
    _check_extents(order)
    _check_blocks(nest, order)
    body: Stmt = nest[-1].body
    for f in reversed(order):
        body = For(f.var, f.begin, f.extent, f.kind, body, f.annotations)
    return Change(fn.with_body(replace(path, body))), None


def _check_extents(order: Sequence[For]) -> None:
    """Refuses an order in which a loop's range would mention a loop inside it."""
    for n, f in enumerate(order):
        for inner in order[n + 1 :]:
            if uses(f.extent, inner.var) or uses(f.begin, inner.var):
                refuse(f"the range of {f.var.name} depends on {inner.var.name}, which must stay outside it", f)


def _check_blocks(old: Sequence[For], new: Sequence[For]) -> None:
    """Refuses to change the order of loops that ordered or opaque axes depend on."""
    for block in outer_blocks_in(old[-1].body):
        kept = [f.var for f in old if _is_ordered(block, f)]
        if kept != [f.var for f in new if f.var in kept]:
            refuse(f"the block {block.name} must run in the order of {', '.join(v.name for v in kept)}", block)


def _is_ordered(block: Block, loop: For) -> bool:
    fixed = (AxisKind.ORDERED, AxisKind.OPAQUE)
    bound = zip(block.axes, block.bindings, strict=True)
    return any(a.kind in fixed and uses(b, loop.var) for a, b in bound)
