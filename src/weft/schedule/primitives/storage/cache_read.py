"""`cache_read`: a block reads a copy of one of its inputs, which a new block makes.

                                        for ax0 in range(0, 8):
for i in range(0, 8):          ->           A_local[ax0] = A[ax0]
    B[i] = A[i] + 1                     for i in range(0, 8):
                                            B[i] = A_local[i] + 1
"""

from __future__ import annotations

from weft.loop import Buffer, Function, Stmt, replace_buffer, seq
from weft.schedule.cursors.loop_nest import copy_nest, fresh_block_name, top_level
from weft.schedule.cursors.primitive import primitive
from weft.schedule.cursors.state import BlockRef, Change
from weft.schedule.cursors.tree import add_alloc, block_path, replace, the_block
from weft.schedule.legality.buffer_visibility import check_scope_name
from weft.schedule.legality.flow_dependence import check_structured
from weft.schedule.legality.placement import check_outermost, source_named


@primitive
def cache_read(fn: Function, block: BlockRef, buffer: str, scope: str) -> tuple[Change, BlockRef]:
    """Lets *block* read *buffer* from a copy in *scope*; returns the block that copies, which can then be placed.

    The copy is of the whole buffer, before the nest of *block*. Refused where the buffer is written inside that nest.
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
    new = replace_buffer_reads(consumer, source, target)
    copy = copy_nest(source, target, name)
    body = replace(nest, seq(copy, _with(path, nest, new)))
    return Change(fn.with_body(add_alloc(body, target))), BlockRef(name)


def replace_buffer_reads(block: Stmt, source: Buffer, target: Buffer) -> Stmt:
    """Returns *block*, which does not write *source*, reading *target* instead."""
    return replace_buffer(block, {source: target})


def _with(path: tuple[Stmt, ...], nest: tuple[Stmt, ...], new: Stmt) -> Stmt:
    """Returns the nest with the block at the end of *path* replaced."""
    return replace(path[len(nest) - 1 :], new)
