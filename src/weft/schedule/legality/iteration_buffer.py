"""Intermediate buffers that each iteration of a loop fills anew, and which may therefore have several copies."""

from __future__ import annotations

from weft.loop import Alloc, Block, Buffer, For, Function, LoopKind, buffers_in, statements
from weft.schedule.cursors.state import BlockRef, LoopRef, called, refuse
from weft.schedule.cursors.tree import Path, alloc_of, block_path, loop_path, the_block, the_loop
from weft.schedule.legality.flow_dependence import check_flat, check_structured, uncovered_read, uses_under
from weft.schedule.legality.loop_kinds import is_private, with_own_buffers
from weft.schedule.legality.placement import written_buffers


def with_iteration_buffer(fn: Function, block: BlockRef, loop: LoopRef) -> tuple[Function, Path, Buffer]:
    """Returns *fn* with the buffer that *block* writes allocated in *loop*, the path of the loop, and the buffer.

    Refuses a loop that is not serial, and a buffer that is no intermediate result of each iteration by itself.
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
    return fn, path, buffer


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
    if any(n.is_of_own_buffer and written[0] in buffers_in(n) for n in target.notes):
        refuse(f"{written[0].name} has two places already", target, "once is enough")
    return written[0]
