"""`unroll`: a loop's iterations are written out one after another.

for i in range(0, 4):          ->       for i in unrolled(0, 4):
    S(i)                                    S(i)
"""

from __future__ import annotations

from weft.loop import Function, LoopKind
from weft.schedule.cursors.primitive import primitive
from weft.schedule.cursors.state import Change, LoopRef
from weft.schedule.legality.loop_kinds import check_constant_extent, set_kind


@primitive
def unroll(fn: Function, loop: LoopRef) -> tuple[Change, None]:
    """Writes out the iterations of *loop*, whose extent must be constant, when code is emitted."""
    check_constant_extent(fn, loop)
    return Change(set_kind(fn, loop, LoopKind.UNROLLED), in_order=True), None
