"""`fetch_ahead`: the operands of a loop's iterations are copied some iterations before, while others are at work.

for i in range(0, 8):                   for i in range(0, 8, fetch_ahead=(T, 3, 2)):
    T = alloc("shared", f32[4])    ->       T = alloc("shared", f32[4])
    ...                                     ...

and lowered, with T of shape [3, 4], an iteration uses T[i % 3, ...] and fills T[(i + 2) % 3, ...]; the first two are filled
before the loop. Where the target has asynchronous copies, a thread waits only for those that it is about to use.
"""

from __future__ import annotations

from weft.loop import FetchAhead, For, Function, Load, Store, with_note
from weft.schedule.cursors.primitive import primitive
from weft.schedule.cursors.state import BlockRef, Change, LoopRef, called, refuse
from weft.schedule.cursors.tree import block_path, blocks_in, replace, the_block, the_loop
from weft.schedule.legality.iteration_buffer import with_iteration_buffer


@primitive
def fetch_ahead(fn: Function, block: BlockRef, loop: LoopRef, copies: int, ahead: int) -> tuple[Change, None]:
    """Gives the buffer that *block* writes so many *copies*, which are filled *ahead* iterations before *loop* uses them.

    Legal where `double_buffer` is, for a block that copies elements of memory that nothing in the loop writes.
    """
    fn, path, buffer = with_iteration_buffer(fn, block, loop)
    target, copy = the_loop(path), the_block(block_path(fn, block))
    note = FetchAhead(buffer, copies, ahead)
    if problem := note.problem():
        refuse(problem, target, "fill a copy at least one iteration ahead, and fewer than there are copies")
    read = copy.body.value.buffer if isinstance(copy.body, Store) and isinstance(copy.body.value, Load) else None
    if read is None or any(r.buffer is read for b in blocks_in(target) for r in b.writes):
        refuse(
            f"{copy.name} is no copy of what {called(target.var)} leaves as it is",
            copy,
            "fetch ahead what is read only",
        )
    new = For(target.var, target.begin, target.extent, target.kind, target.body, with_note(target.notes, note))
    return Change(fn.with_body(replace(path, new))), None
