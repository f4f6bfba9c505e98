"""`parallel`: a loop's iterations are shared out among the threads.

for i in range(0, 64):         ->       for i in parallel(0, 64):
    S(i)                                    S(i)
"""

from __future__ import annotations

from weft.loop import Function, LoopKind
from weft.schedule.cursors.primitive import primitive
from weft.schedule.cursors.state import Change, LoopRef
from weft.schedule.legality.loop_kinds import check_independent, set_kind, with_own_buffers


@primitive
def parallel(fn: Function, loop: LoopRef) -> tuple[Change, None]:
    """Runs the iterations of *loop* in parallel; legal if no iteration accesses elements that another writes.

    An intermediate buffer that is used in the loop only is privatised: its allocation moves into the loop.
    """
    own = check_independent(fn, loop, private=True)
    return Change(with_own_buffers(set_kind(fn, loop, LoopKind.PARALLEL), loop, own), in_order=True), None
