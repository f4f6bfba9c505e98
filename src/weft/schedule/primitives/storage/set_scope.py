"""`set_scope`: an intermediate buffer moves to another memory.

with alloc("global", f32[8]) as A:     ->     with alloc("register", f32[8]) as A:
"""

from __future__ import annotations

from weft.loop import Alloc, Buffer, Function, replace_buffer, replace_in_loop_notes
from weft.schedule.cursors.primitive import primitive
from weft.schedule.cursors.state import BlockRef, Change, refuse
from weft.schedule.cursors.tree import alloc_of, block_path, replace, the_block
from weft.schedule.legality.buffer_visibility import check_scope_name
from weft.schedule.legality.placement import written_buffers


@primitive
def set_scope(fn: Function, block: BlockRef, scope: str) -> tuple[Change, None]:
    """Puts the buffer that *block* writes into *scope*; legal for a buffer that is allocated in the function."""
    check_scope_name(scope)
    producer = the_block(block_path(fn, block))
    body = fn.body
    for old in written_buffers(producer):
        path = alloc_of(body, old)
        if path is None:
            refuse(f"{old.name} is a parameter of the function", producer, "cache_write makes a buffer of its own")
        found = path[-1]
        new = Buffer(old.name, old.shape, old.dtype, scope, old.strides)
        inner = found.body if isinstance(found, Alloc) else found
        body = replace_in_loop_notes(replace(path, Alloc(new, replace_buffer(inner, {old: new}))), {old: new})
    return Change(fn.with_body(body), in_order=True), None
