"""`tile`: nested loops become loops over tiles, and inside them loops over the elements of a tile.

for i in range(0, 32):                  for i_0 in range(0, 8):
    for j in range(0, 64):                  for j_0 in range(0, 4):
        S(i, j)                ->               for i_1 in range(0, 4):
                                                    for j_1 in range(0, 16):
                                                        S(i_0 * 4 + i_1, j_0 * 16 + j_1)

After Wolfe, "More iteration space tiling" (Supercomputing 1989).
"""

from __future__ import annotations

from collections.abc import Sequence

from weft.ir import Var
from weft.loop import Function
from weft.schedule.cursors.primitive import primitive
from weft.schedule.cursors.state import Change, LoopRef, refuse
from weft.schedule.primitives.loops.reorder import reorder
from weft.schedule.primitives.loops.split import split


@primitive
def tile(fn: Function, loops: Sequence[LoopRef], sizes: Sequence[int]) -> tuple[Change, tuple[LoopRef, ...]]:
    """Cuts *loops*, nested directly in one another, into tiles of *sizes*; returns the loops, outermost first.

    The same as a `split` of each and a `reorder`: legal where both are, with guards where a size does not divide. A reference
    to one of the old loops leads to its loop over tiles.
    """
    if len(loops) < 2 or len(loops) != len(sizes):
        refuse(
            f"{len(loops)} loops and {len(sizes)} sizes were given", hint="a tile takes two or more loops, a size each"
        )
    outer: list[LoopRef] = []
    inner: list[LoopRef] = []
    forward: list[tuple[Var, Var]] = []
    for loop, size in zip(loops, sizes, strict=True):
        change, (tiles, elements) = split(fn, loop, [None, size])
        fn = change.function
        forward += change.forward
        outer.append(tiles)
        inner.append(elements)
    made = (*outer, *inner)
    change, _ = reorder(fn, made)
    return Change(change.function, tuple(forward)), made
