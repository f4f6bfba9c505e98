"""`cache_read`: a block reads a copy of one of its inputs, which a new block makes.

                                        for ax0 in range(0, 8):
for i in range(0, 8):          ->           A_local[ax0] = A[ax0]
    B[i] = A[i] + 1                     for i in range(0, 8):
                                            B[i] = A_local[i] + 1
"""

from __future__ import annotations

from collections.abc import Sequence

from weft.loop import Block, Buffer, Function, Stmt, replace_buffer, seq
from weft.schedule.cursors.loop_nest import copy_nest, fresh_block_name, top_level
from weft.schedule.cursors.primitive import primitive
from weft.schedule.cursors.rebind import map_blocks
from weft.schedule.cursors.state import BlockRef, Change, refuse
from weft.schedule.cursors.tree import add_alloc, block_path, replace, the_block
from weft.schedule.legality.buffer_visibility import check_scope_name
from weft.schedule.legality.flow_dependence import check_structured
from weft.schedule.legality.placement import check_outermost, source_named


@primitive
def cache_read(
    fn: Function, block: BlockRef, buffer: str, scope: str, also: Sequence[BlockRef] = ()
) -> tuple[Change, BlockRef]:
    """Lets *block* read *buffer* from a copy in *scope*; returns the block that copies, which can then be placed.

    The copy is of the whole buffer, before the nest of *block*. Refused where the buffer is written inside that nest. Other
    blocks of the nest that are to read the same copy are named by *also*.
    """
    check_scope_name(scope)
    path = block_path(fn, block)
    consumer = the_block(path)
    check_structured(fn.body)
    check_outermost(path)
    nest = top_level(path)
    source = source_named(consumer, buffer, nest[-1])
    name = fresh_block_name(fn, f"{buffer}_{scope}")
    target = Buffer(name, source.shape, source.dtype, scope)
    chosen = {consumer, *[_another(fn, other, nest[-1], source) for other in also]}
    new = map_blocks(nest[-1], lambda b: replace_buffer_reads(b, source, target) if b in chosen else b)
    copy = copy_nest(source, target, name)
    body = replace(nest, seq(copy, new))
    return Change(fn.with_body(add_alloc(body, target))), BlockRef(name)


def replace_buffer_reads(block: Stmt, source: Buffer, target: Buffer) -> Stmt:
    """Returns *block*, which does not write *source*, reading *target* instead."""
    return replace_buffer(block, {source: target})


def _another(fn: Function, ref: BlockRef, nest: Stmt, source: Buffer) -> Block:
    """Returns a further block that is to read the copy; refuses one of another nest, or that does not read *source*."""
    path = block_path(fn, ref)
    found = the_block(path)
    if nest not in path:
        refuse(f"{found.name} is not in the nest that the copy is made for", found, "place it there first")
    if source_named(found, source.name, nest) is not source:
        refuse(f"{found.name} reads another buffer called {source.name}", found, "make a copy of its own for it")
    return found
