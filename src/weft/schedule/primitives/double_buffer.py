"""`double_buffer`: an intermediate of a loop's iterations gets two places, which the iterations use in turn.

for i in range(0, 8):                   for i in range(0, 8, double_buffer="T"):
    T = alloc("global", f32[4])    ->       T = alloc("global", f32[4])
    ...                                     ...

and lowered, with T of shape [2, 4], each T[x] becomes T[i % 2, x]: what an iteration still reads is not what the next one writes.
"""

from __future__ import annotations

from weft.loop.nodes import Alloc, Block, Buffer, For, Function, LoopKind
from weft.loop.visit import statements
from weft.schedule.dependence import check_flat, check_structured, unfed_read, uses_under
from weft.schedule.kinds import is_private, with_own_buffers
from weft.schedule.placing import written_buffers
from weft.schedule.primitive import primitive
from weft.schedule.state import BlockRef, Change, LoopRef, called, refuse
from weft.schedule.tree import alloc_of, block_path, loop_path, replace, the_block, the_loop

KEY = "double_buffer"


@primitive
def double_buffer(fn: Function, block: BlockRef, loop: LoopRef) -> tuple[Change, None]:
    """Gives what *block* writes two places, used by even and odd iterations of *loop*.

    Legal for the one buffer that the block writes, if it is used in the loop only and each iteration makes all that it reads
    of it, and for a serial loop. The buffer's allocation moves into the loop.
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
        unfed = unfed_read(fn, uses)
        if unfed is not None or not is_private(fn, path, uses, buffer):
            refuse(
                f"an iteration of {called(target.var)} may use what another one leaves in {buffer.name}",
                producer,
                "only what is made anew in each iteration can have two places",
            )
        fn = with_own_buffers(fn, loop, [buffer])
        path = loop_path(fn, loop)
        target = the_loop(path)
    new = For(target.var, target.begin, target.extent, target.kind, target.body, _noted(target, buffer))
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
    if written[0].name in _names(target):
        refuse(f"{written[0].name} has two places already", target, "once is enough")
    return written[0]


def _names(target: For) -> list[str]:
    return str(dict(target.annotations).get(KEY, "")).split()


def _noted(target: For, buffer: Buffer) -> tuple[tuple[str, int | str | float | bool], ...]:
    others = tuple([(k, v) for k, v in target.annotations if k != KEY])
    return (*others, (KEY, " ".join([*_names(target), buffer.name])))
