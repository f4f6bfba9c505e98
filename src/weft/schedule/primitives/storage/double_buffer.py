"""`double_buffer`: an intermediate buffer of a loop's iterations gets two copies, which the iterations use in turn.

for i in range(0, 8):                   for i in range(0, 8, double_buffer=T):
    T = alloc("global", f32[4])    ->       T = alloc("global", f32[4])
    ...                                     ...

and lowered, with T of shape [2, 4], each T[x] becomes T[i % 2, x]: the next iteration's writes don't overwrite this one's reads.
"""

from __future__ import annotations

from weft.loop import Alloc, Block, Buffer, DoubleBuffer, For, Function, LoopKind, statements, with_note
from weft.schedule.cursors.primitive import primitive
from weft.schedule.cursors.state import BlockRef, Change, LoopRef, called, refuse
from weft.schedule.cursors.tree import alloc_of, block_path, loop_path, replace, the_block, the_loop
from weft.schedule.legality.flow_dependence import check_flat, check_structured, uncovered_read, uses_under
from weft.schedule.legality.loop_kinds import is_private, with_own_buffers
from weft.schedule.legality.placement import written_buffers


@primitive
def double_buffer(fn: Function, block: BlockRef, loop: LoopRef) -> tuple[Change, None]:
    """Gives the buffer that *block* writes two copies, used by even and odd iterations of *loop*.

    Legal for the one buffer that the block writes, if it is used in the loop only and each iteration writes all elements of it
    that it reads, and for a serial loop. The buffer's allocation moves into the loop.
    """
    producer = the_block(block_path(fn, block))
    path = loop_path(fn, loop)
    target = the_loop(path)
    if target not in block_path(fn, block):
        refuse(f"{producer.name} is not in the loop {called(target.var)}", producer, "compute_at it there first")
    if target.kind is not LoopKind.SERIAL:
        refuse(
            f"the loop {called(target.var)} is {target.kind}: its iterations do not take turns",
            target,
            "choose a serial loop",
        )
    check_structured(target)
    check_flat(target)
    buffer = _buffer(fn, producer, target)
    if alloc_of(target, buffer) is None:
        uses = uses_under(path)[buffer]
        unfed = uncovered_read(fn, uses)
        if unfed is not None or not is_private(fn, path, uses, buffer):
            refuse(
                f"an iteration of {called(target.var)} may use what another one leaves in {buffer.name}",
                producer,
                "only what is made anew in each iteration can have two places",
            )
        fn = with_own_buffers(fn, loop, [buffer])
        path = loop_path(fn, loop)
        target = the_loop(path)
    notes = with_note(target.notes, DoubleBuffer(buffer))
    new = For(target.var, target.begin, target.extent, target.kind, target.body, notes)
    return Change(fn.with_body(replace(path, new))), None


def _buffer(fn: Function, producer: Block, target: For) -> Buffer:
    written = written_buffers(producer)
    if len(written) != 1 or alloc_of(fn.body, written[0]) is None:
        refuse(
            f"{producer.name} does not write one intermediate result",
            producer,
            "cache_read or cache_write makes an intermediate buffer",
        )
    same = [s for s in statements(fn.body) if isinstance(s, Alloc) and s.buffer.name == written[0].name]
    if len(same) != 1:
        refuse(f"there are {len(same)} buffers called {written[0].name}", producer, "give them different names first")
    if DoubleBuffer(written[0]) in target.notes:
        refuse(f"{written[0].name} has two places already", target, "once is enough")
    return written[0]
