"""`blockize`: a nest of loops around a block becomes one block, which is scheduled as a whole.

for i in range(0, 64):                        for i in range(0, 64):
    for j0 in range(0, 4):                        for j0 in range(0, 4):
        for j1 in range(0, 16):       ->              with block("C_o", vi=spatial(64, i), vj=spatial(4, j0)):
            with block("C", vi=spatial(64, i),            for j1 in range(0, 16):
                       vj=spatial(64, j0*16 + j1)):           with block("C", vi_i=spatial(64, vi),
                C[vi, vj] = f(vi, vj)                                    vj_i=spatial(64, vj*16 + j1)):
                                                                  C[vi_i, vj_i] = f(vi_i, vj_i)
"""

from __future__ import annotations

from weft.loop import Function
from weft.schedule.cursors.primitive import primitive
from weft.schedule.cursors.state import BlockRef, Change, LoopRef
from weft.schedule.rewriting.nest_to_block import enclose


@primitive
def blockize(fn: Function, loop: LoopRef) -> tuple[Change, BlockRef]:
    """Makes *loop* and its body one block, around the block inside; returns the outer block.

    Legal if there is but one block in the loops, if each of its axes is bound to a whole number of steps of the loops
    outside plus a position within the step, and if its guard depends on the loops outside only. A reduction is started by
    the outer block.
    """
    function, outer = enclose(fn, loop)
    return Change(function), BlockRef(outer.name)
