"""`storage_align`: the rows of an intermediate buffer are padded, so that they do not all map to the same sets of a cache.

T = alloc("global", f32[64, 1024])     ->     T = alloc("global", f32[64, 1024], strides=(1040, 1))
"""

from __future__ import annotations

from weft.ir import ONE, Expr, index, simplify
from weft.loop import Alloc, Block, Buffer, Function, replace_buffer, replace_in_loop_notes
from weft.schedule.cursors.primitive import primitive
from weft.schedule.cursors.state import BlockRef, Change, refuse
from weft.schedule.cursors.tree import alloc_of, block_path, replace, the_block
from weft.schedule.legality.placement import written_buffers


@primitive
def storage_align(fn: Function, block: BlockRef, axis: int, factor: int, offset: int = 0) -> tuple[Change, None]:
    """Pads the stride of dimension *axis* of the buffer that *block* writes: in elements, a multiple of *factor* plus *offset*.

    Legal for the one buffer that the block writes, if it is allocated in the function and has no strides yet. A later placement
    shrinks the buffer's box but keeps its strides.
    """
    producer = the_block(block_path(fn, block))
    old = _target(fn, producer)
    if not 0 <= axis < old.rank:
        refuse(
            f"{old.name} has {old.rank} dimensions, so that there is no dimension {axis}",
            producer,
            "dimensions count from 0",
        )
    if factor < 1 or not 0 <= offset < factor:
        refuse(f"a stride can't be a multiple of {factor} plus {offset}", producer, "the offset is below the factor")
    new = Buffer(old.name, old.shape, old.dtype, old.scope, _strides(old, axis, factor, offset))
    path = alloc_of(fn.body, old) or ()
    found = path[-1]
    inner = found.body if isinstance(found, Alloc) else found
    body = replace(path, Alloc(new, replace_buffer(inner, {old: new})))
    return Change(fn.with_body(replace_in_loop_notes(body, {old: new})), in_order=True), None


def _target(fn: Function, producer: Block) -> Buffer:
    written = written_buffers(producer)
    if len(written) != 1:
        refuse(
            f"{producer.name} writes {len(written)} buffers, not one",
            producer,
            "only a block with one result can be aligned",
        )
    if alloc_of(fn.body, written[0]) is None:
        refuse(f"{written[0].name} is a parameter of the function", producer, "cache_write makes a buffer of its own")
    if written[0].strides is not None:
        refuse(f"{written[0].name} has strides already", producer, "once is enough")
    return written[0]


def _strides(b: Buffer, axis: int, factor: int, offset: int) -> list[Expr]:
    """Returns the row-major strides of *b*, with that of *axis* rounded up."""
    strides: list[Expr] = []
    step: Expr = ONE
    for d in reversed(range(b.rank)):
        if d == axis:
            step = simplify(step + (index(offset) - step) % index(factor))
        strides.append(step)
        step = simplify(b.shape[d] * step)
    return strides[::-1]
