"""`cache_write`: a block writes to a new buffer, from which a new block copies to the old one.

                                        for i in range(0, 8):
for i in range(0, 8):          ->           B_local[i] = A[i] + 1
    B[i] = A[i] + 1                     for ax0 in range(0, 8):
                                            B[ax0] = B_local[ax0]
"""

from __future__ import annotations

from weft.ir import TRUE, Bounds, detect_iter_map, free_vars
from weft.loop import Block, Buffer, Function, Region, replace_buffer, seq
from weft.schedule.cursors.loop_nest import copy_nest, fresh_block_name, top_level
from weft.schedule.cursors.primitive import primitive
from weft.schedule.cursors.state import BlockRef, Change, refuse
from weft.schedule.cursors.tree import Path, add_alloc, block_path, blocks_in, regions_of, replace, the_block
from weft.schedule.legality.bijection import instance_map
from weft.schedule.legality.buffer_visibility import check_scope_name
from weft.schedule.legality.coverage import covers_region, element_of
from weft.schedule.legality.flow_dependence import check_structured
from weft.schedule.legality.placement import check_movable, readers, written_buffers


@primitive
def cache_write(fn: Function, block: BlockRef, scope: str) -> tuple[Change, BlockRef]:
    """Lets *block* write to a buffer in *scope*; returns the block that copies from there, which can then be placed.

    The copy is of the whole buffer, after the nest of *block*. Refused where the result is read inside that nest.
    """
    check_scope_name(scope)
    path = block_path(fn, block)
    producer = the_block(path)
    check_structured(fn.body)
    check_movable(fn, path, producer)
    written = written_buffers(producer)
    if len(written) != 1:
        refuse(
            f"{producer.name} writes {len(written)} buffers, not one",
            producer,
            "only a block with one result can write to a copy",
        )
    source = written[0]
    _check_whole(fn, path, source)
    nest = top_level(path)
    for reader in readers(fn, producer):
        if reader in blocks_in(nest[-1]):
            refuse(
                f"{reader.name} reads {source.name} in the nest that writes it",
                reader,
                "cache_write before placing its readers",
            )
    target = Buffer(fresh_block_name(fn, f"{source.name}_{scope}"), source.shape, source.dtype, scope)
    name = fresh_block_name(fn, f"{source.name}_write")
    new = replace(path[len(nest) - 1 :], replace_buffer(producer, {source: target}))
    body = replace(nest, seq(new, copy_nest(target, source, name)))
    return Change(fn.with_body(add_alloc(body, target))), BlockRef(name)


def _check_whole(fn: Function, path: Path, source: Buffer) -> None:
    """Refuses a block that leaves some elements as they are: the copy would overwrite them."""
    producer = the_block(path)
    found = instance_map(fn, path)
    regions = regions_of(producer.writes, source)
    updates = any(r.buffer is source for r in producer.reads)
    if updates or found is None or not found.surjective or len(regions) != 1 or not _covers(producer, regions[0]):
        refuse(f"{producer.name} may not write all of {source.name}", producer, "the copy would overwrite the rest")


def _covers(producer: Block, region: Region) -> bool:
    """Tells whether the instances of *producer* together store to every element of the buffer of *region*."""
    indices, elements = element_of(region)
    loops = {a.var: a.extent for a in producer.axes} | {f.var: f.extent for f in elements}
    used = {v: loops[v] for i in indices for v in free_vars(i) if v in loops}
    found = detect_iter_map(indices, used, TRUE, region.buffer.shape, Bounds())
    return found is not None and found.surjective and covers_region(producer, region)
