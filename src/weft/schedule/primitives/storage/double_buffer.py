"""`double_buffer`: an intermediate buffer of a loop's iterations gets two copies, which the iterations use in turn.

for i in range(0, 8):                   for i in range(0, 8, double_buffer=T):
    T = alloc("global", f32[4])    ->       T = alloc("global", f32[4])
    ...                                     ...

and lowered, with T of shape [2, 4], each T[x] becomes T[i % 2, x]: the next iteration's writes don't overwrite this one's reads.
"""

from __future__ import annotations

from weft.loop import DoubleBuffer, For, Function, with_note
from weft.schedule.cursors.primitive import primitive
from weft.schedule.cursors.state import BlockRef, Change, LoopRef
from weft.schedule.cursors.tree import replace, the_loop
from weft.schedule.legality.iteration_buffer import with_iteration_buffer


@primitive
def double_buffer(fn: Function, block: BlockRef, loop: LoopRef) -> tuple[Change, None]:
    """Gives the buffer that *block* writes two copies, used by even and odd iterations of *loop*.

    Legal for the one buffer that the block writes, if it is used in the loop only and each iteration writes all elements of it
    that it reads, and for a serial loop. The buffer's allocation moves into the loop.
    """
    fn, path, buffer = with_iteration_buffer(fn, block, loop)
    target = the_loop(path)
    notes = with_note(target.notes, DoubleBuffer(buffer))
    new = For(target.var, target.begin, target.extent, target.kind, target.body, notes)
    return Change(fn.with_body(replace(path, new))), None
