"""`vectorize`: a loop's iterations become the lanes of vectors.

for i in range(0, 16):         ->       for i in vectorized(0, 16):
    S(i)                                    S(i)
"""

from __future__ import annotations

from weft.loop import Function, LoopKind
from weft.schedule.cursors.primitive import primitive
from weft.schedule.cursors.state import Change, LoopRef
from weft.schedule.legality.loop_kinds import check_constant_extent, check_independent, set_kind


@primitive
def vectorize(fn: Function, loop: LoopRef) -> tuple[Change, None]:
    """Runs the iterations of *loop* as vector lanes; legal for a constant extent and independent iterations."""
    check_constant_extent(fn, loop)
    check_independent(fn, loop, private=False)
    return Change(set_kind(fn, loop, LoopKind.VECTORIZED), in_order=True), None
