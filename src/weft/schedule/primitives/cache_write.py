"""`cache_write`: a block writes to a new buffer, from which a new block copies to the old one.

                                        for i in range(0, 8):
for i in range(0, 8):          ->           B_local[i] = A[i] + 1
    B[i] = A[i] + 1                     for ax0 in range(0, 8):
                                            B[ax0] = B_local[ax0]
"""

from __future__ import annotations

from weft.loop.nodes import Buffer, Function, seq
from weft.loop.visit import replace_buffer
from weft.schedule.bijection import instance_map
from weft.schedule.dependence import check_structured
from weft.schedule.nest import copy_nest, fresh_block_name, top_level
from weft.schedule.placing import axis_of_index, check_movable, readers, written_buffers
from weft.schedule.primitive import primitive
from weft.schedule.state import BlockRef, Change, refuse
from weft.schedule.tree import Path, add_alloc, block_path, blocks_in, regions_of, replace, the_block


@primitive
def cache_write(fn: Function, block: BlockRef, scope: str) -> tuple[Change, BlockRef]:
    """Lets *block* write to a buffer in *scope*; returns the block that copies from there, which can then be placed.

    The copy is of the whole buffer, after the nest of *block*. Refused where the result is read inside that nest.
    """
    path = block_path(fn, block)
    producer = the_block(path)
    check_structured(fn.body)
    check_movable(fn, path, producer)
    written = written_buffers(producer)
    if len(written) != 1:
        refuse(f"{producer.name} writes {len(written)} buffers, not one", producer)
    source = written[0]
    _check_whole(fn, path, source)
    nest = top_level(path)
    for reader in readers(fn, producer):
        if reader in blocks_in(nest[-1]):
            refuse(f"{reader.name} reads {source.name} in the nest that writes it", reader)
    target = Buffer(fresh_block_name(fn, f"{source.name}_{scope}"), source.shape, source.dtype, scope)
    name = fresh_block_name(fn, f"{source.name}_write")
    new = replace(path[len(nest) - 1 :], replace_buffer(producer, {source: target}))
    body = replace(nest, seq(new, copy_nest(target, source, name)))
    return Change(fn.with_body(add_alloc(body, target))), BlockRef(name)


def _check_whole(fn: Function, path: Path, source: Buffer) -> None:
    """Refuses a block that leaves some elements as they are: the copy would overwrite them."""
    producer = the_block(path)
    found = instance_map(fn, path)
    extents = {a.var: a.extent for a in producer.axes}
    axes = [axis_of_index(producer, r) for r in regions_of(producer.writes, source)]
    whole = len(axes) == 1 and [extents.get(v) for v in axes[0] if v is not None] == list(source.shape)
    if any(r.buffer is source for r in producer.reads) or found is None or not found.surjective or not whole:
        refuse(f"{producer.name} may not write all of {source.name}", producer)
