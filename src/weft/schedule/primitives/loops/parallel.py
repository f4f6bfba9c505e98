"""`parallel`: a loop's iterations are shared out among the threads.

for i in range(0, 64):         ->       for i in parallel(0, 64):
    S(i)                                    S(i)

for c in range(0, 4):                   for c in parallel(0, 4, task_inside=1):       a thread that takes the iterations
    for i in range(0, 64):     ->           for i in range(0, 64):                    from b to e runs
        S(i, c)                                 S(i, c)                               for i: for c in range(b, e): S(i, c)
"""

from __future__ import annotations

from weft.loop import For, Function, LoopKind, TaskInside, with_note
from weft.schedule.cursors.primitive import primitive
from weft.schedule.cursors.state import Change, LoopRef, refuse
from weft.schedule.cursors.tree import loop_path, replace, the_loop
from weft.schedule.legality.loop_kinds import check_independent, set_kind, with_own_buffers


@primitive
def parallel(fn: Function, loop: LoopRef, inside: int = 0) -> tuple[Change, None]:
    """Runs the iterations of *loop* in parallel; legal if no iteration accesses elements that another writes.

    An intermediate buffer that is used in the loop only is privatised: its allocation moves into the loop. A thread runs its
    iterations *inside* of so many loops under this one, which are nested in one another with nothing between: what these
    loops read is then read once by each thread, and the order of the loops is as good for one thread as for several.
    """
    own = check_independent(fn, loop, private=True)
    made = with_own_buffers(set_kind(fn, loop, LoopKind.PARALLEL), loop, own)
    return Change(_noted(made, loop, inside) if inside else made, in_order=True), None


def _noted(fn: Function, loop: LoopRef, inside: int) -> Function:
    """Notes how many loops the iterations of *loop* are to be inside of, which has these under it."""
    path = loop_path(fn, loop)
    old = under = the_loop(path)
    for _ in range(inside):
        if not isinstance(under.body, For) or under.body.kind is not LoopKind.SERIAL:
            refuse(f"there are no {inside} serial loops right under it", old, "nest them, or give another number")
        under = under.body
    notes = with_note(old.notes, TaskInside(inside))
    return fn.with_body(replace(path, For(old.var, old.begin, old.extent, old.kind, old.body, notes)))
