"""`bind`: a loop's iterations become the threads along one axis of a device's grid.

for i in range(0, 64):         ->       for i in bound(0, 64, thread="threadIdx.x"):
    S(i)                                    S(i)
"""

from __future__ import annotations

from weft.loop import THREAD_AXES, For, Function, LoopKind, Thread, statements, with_note
from weft.schedule.cursors.primitive import primitive
from weft.schedule.cursors.state import Change, LoopRef, called, refuse
from weft.schedule.cursors.tree import loop_path, replace, the_loop
from weft.schedule.legality.loop_kinds import check_constant_extent, check_independent, set_kind, with_own_buffers


@primitive
def bind(fn: Function, loop: LoopRef, thread: str) -> tuple[Change, None]:
    """Runs the iterations of *loop* as the threads of the axis *thread*, one of `blockIdx.x/y/z`, `threadIdx.x/y/z`, `vthread`.

    Legal where `parallel` is; the extent of a loop over threads or virtual threads must be constant, and only `vthread` may be
    bound again inside a loop that is bound to it. An intermediate buffer used in the loop only is privatised to each thread.
    Loops along unordered axes may be bound, too: lowering makes the block's updates atomic.
    """
    path = loop_path(fn, loop)
    old = the_loop(path)
    if thread not in THREAD_AXES:
        refuse(f"there is no thread axis {thread}", old, f"use one of {', '.join(THREAD_AXES)}")
    if not thread.startswith("blockIdx"):
        check_constant_extent(fn, loop)
    for s in (*path[:-1], *statements(old.body)):
        if isinstance(s, For) and thread != "vthread" and Thread(thread) in s.notes:
            refuse(
                f"the loop {called(s.var)} is bound to {thread} already",
                s,
                "use another thread axis, or fuse the two loops",
            )
    own = check_independent(fn, loop, private=True, threads=True)
    fn = set_kind(fn, loop, LoopKind.BOUND)
    path = loop_path(fn, loop)
    made = the_loop(path)
    noted = For(made.var, made.begin, made.extent, made.kind, made.body, with_note(made.notes, Thread(thread)))
    return Change(with_own_buffers(fn.with_body(replace(path, noted)), loop, own)), None
