"""`pack`: a block reads one of its inputs from a copy in another layout, which a new block makes.

                                              for ax0 in range(0, 4):
for j in range(0, 64):                            for ax1 in range(0, 16):
    for k in range(0, 16):                            for ax2 in range(0, 4):
        C[j] = C[j] + B[k, j]        ->                   B_packed[ax0, ax1, ax2] = B[ax0*4 + ax2, ax1]
                                              ...
"""

from __future__ import annotations

from weft.loop import Buffer, Function, Load, seq
from weft.schedule.cursors.loop_nest import fresh_block_name, top_level
from weft.schedule.cursors.primitive import primitive
from weft.schedule.cursors.state import BlockRef, Change
from weft.schedule.cursors.tree import add_alloc, block_path, bounds_on, replace, the_block
from weft.schedule.legality.flow_dependence import check_flat, check_structured
from weft.schedule.legality.placement import source_named
from weft.schedule.rewriting.index_map import parse_index_map
from weft.schedule.rewriting.layout_change import layout_nest, with_layout


@primitive
def pack(
    fn: Function, block: BlockRef, buffer: str, index_map: str, scope: str, pad: int | float | None = None
) -> tuple[Change, BlockRef]:
    """Lets *block* read *buffer* from a copy in *scope*, laid out by *index_map*; returns the block that copies.

    The map is a text such as `k, j -> j // 16, k // 4, j % 16, k % 4`, one-to-one; the copy is made in the order of its
    results. Where it pads, the padding is filled with *pad*, or with zeros if that is None. Refused where the buffer is
    written inside the nest of *block*.
    """
    path = block_path(fn, block)
    consumer = the_block(path)
    check_structured(fn.body)
    check_flat(fn.body)
    nest = top_level(path)
    source = source_named(consumer, buffer, nest[-1])
    layout = parse_index_map(index_map, source.shape, bounds_on((), fn))
    name = fresh_block_name(fn, f"{buffer}_packed")
    target = Buffer(name, layout.to, source.dtype, scope)
    new = with_layout(consumer, source, target, layout, bounds_on((), fn))
    copy = layout_nest(fn, target, layout, name, lambda i: Load(source, tuple(i)), pad or 0)
    body = replace(nest, seq(copy, replace(path[len(nest) - 1 :], new)))
    return Change(fn.with_body(add_alloc(body, target))), BlockRef(name)
