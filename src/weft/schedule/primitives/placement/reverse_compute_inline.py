"""`reverse_compute_inline`: a consumer's formula is applied where its producer writes.

for i in range(0, 8):
    A[i] = f(i)                ->       for i in range(0, 8):
for i in range(0, 8):                       B[i] = f(i) + 1
    B[i] = A[i] + 1
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeAlias

from weft.ir import ONE, TRUE, ZERO, Bounds, Expr, Var, detect_iter_map, extremes, prove, simplify, substitute
from weft.loop import NOTHING, Block, Function, Region, Store
from weft.schedule.cursors.primitive import primitive
from weft.schedule.cursors.rebind import conjunction, with_bindings
from weft.schedule.cursors.state import BlockRef, Change, refuse
from weft.schedule.cursors.tree import (
    Path,
    block_path,
    bounds_on,
    drop_alloc,
    outer_blocks,
    plain_store,
    regions_of,
    replace,
    the_block,
)
from weft.schedule.legality.access_region import at_loops
from weft.schedule.legality.bijection import instance_map
from weft.schedule.legality.flow_dependence import check_structured
from weft.schedule.legality.placement import (
    check_intermediate,
    check_movable,
    check_outermost,
    check_untouched,
    read_buffers,
    readers,
    written_buffers,
)
from weft.schedule.legality.reaching_writes import check_reaching_writes
from weft.schedule.rewriting.index_map import IndexMap
from weft.schedule.rewriting.inlining import axes_written, check_plain, replace_loads, with_body

Box: TypeAlias = Sequence[tuple[Expr, Expr]]
"""The first index and the extent of a box in each dimension."""


@primitive
def reverse_compute_inline(fn: Function, block: BlockRef) -> tuple[Change, None]:
    """Applies *block* to the value that its producer computes, and removes the value's buffer.

    The producer is the last block before it with a result that only *block* reads. Legal if both are one assignment, the producer
    is no reduction, and *block* reads each element of a box of its result once, as in a transposition, a slice or a reshape.
    """
    path = block_path(fn, block)
    consumer = the_block(path)
    check_structured(fn.body)
    check_outermost(path)
    write = check_plain(fn, path)
    if not _runs_all(fn, path):
        refuse(
            f"{consumer.name} may run some of its instances never",
            consumer,
            "only a block that runs over all of its axes can be inlined",
        )
    producer = _producer(fn, consumer)
    source = _source(fn, producer)
    check_untouched(fn, consumer, producer)
    to_producer, inside = _axes(fn, consumer, producer, source)

    def value(indices: tuple[Expr, ...]) -> Expr:
        return source.value

    new = with_body(producer, substitute(replace_loads(write, source.buffer, value), to_producer), None)
    without = fn.with_body(replace(check_movable(fn, path, consumer), NOTHING))
    place = block_path(without, BlockRef(producer.name))
    guard = conjunction([producer.predicate, at_loops(producer, inside)], bounds_on(place, fn))
    body = replace(place, with_bindings(new, producer.bindings, guard))
    inlined = fn.with_body(drop_alloc(body, source.buffer))
    check_reaching_writes(fn, consumer.name, inlined, producer.name)
    return Change(inlined), None


def _runs_all(fn: Function, path: Path) -> bool:
    found = instance_map(fn, path)
    return found is not None and found.surjective


def _producer(fn: Function, consumer: Block) -> Block:
    """Returns the last block before the consumer with an intermediate result that only the consumer reads."""
    read = set(read_buffers(consumer))
    order = outer_blocks(fn.body)
    makers = [b for b in order[: order.index(consumer)] if read & set(written_buffers(b))]
    if not makers:
        refuse(
            f"nothing makes what {consumer.name} reads",
            consumer,
            "only a block that reads an intermediate result has a producer",
        )
    private = [b for b in makers if readers(fn, b) == [consumer]]
    if not private:
        refuse(
            f"{makers[-1].name} has other readers than {consumer.name}", makers[-1], "compute_inline serves all readers"
        )
    check_intermediate(fn, private[-1])
    return private[-1]


def _source(fn: Function, producer: Block) -> Store:
    """Returns the assignment of the producer; refuses a reduction."""
    if producer.init is not None or any(r.buffer in written_buffers(producer) for r in producer.reads):
        refuse(f"{producer.name} is a reduction", producer, "reverse_compute_at runs it in the loops of the reduction")
    check_movable(fn, block_path(fn, BlockRef(producer.name)), producer)
    return plain_store(producer)


def _axes(fn: Function, consumer: Block, producer: Block, source: Store) -> tuple[dict[Var, Expr], Expr]:
    """Returns the consumer's axes in terms of the producer's, and the condition that the consumer reads the element produced.

    Refuses indices that are not one-to-one from the consumer's axes to a box of the producer's result.
    """
    written = axes_written(producer, source)
    regions = regions_of(consumer.reads, source.buffer)
    bounds = bounds_on((), fn)
    for a in (*consumer.axes, *producer.axes):
        bounds = bounds.bind(a.var, ZERO, a.extent - ONE)
    box = _box_read(regions[0], consumer, bounds) if len(regions) == 1 else None
    layout = None if box is None else _layout_read(regions[0], consumer, box, bounds)
    if box is None or layout is None or not _is_made(producer, written, box, bounds):
        refuse(
            f"{consumer.name} does not read each element of a box of {source.buffer.name} once",
            consumer,
            "inline the producer into it, or compute it in the producer's loops",
        )
    inverse = layout.inverse([v - low for v, (low, _) in zip(written, box, strict=True)], bounds)
    limits = [c for v, (low, width) in zip(written, box, strict=True) for c in (low <= v, v < low + width)]
    return dict(zip(layout.inputs, inverse, strict=True)), conjunction(limits, bounds)


def _box_read(region: Region, consumer: Block, bounds: Bounds) -> Box | None:
    """Returns the box of indices of *region* that *consumer* reads, an element at a time; None if its ends are unknown."""
    axes = [a.var for a in consumer.axes]
    box = []
    for r in region.ranges:
        ends = extremes(r.begin, axes, bounds) if r.extent is ONE else None
        if ends is None:
            return None
        box.append((ends[0], simplify(ends[1] - ends[0] + ONE, bounds)))
    return box


def _layout_read(region: Region, consumer: Block, box: Box, bounds: Bounds) -> IndexMap | None:
    """Returns the map from the consumer's axes to indices in *box*; None if it is not one-to-one."""
    axes = {a.var: a.extent for a in consumer.axes}
    read = tuple([simplify(r.begin - low, bounds) for r, (low, _) in zip(region.ranges, box, strict=True)])
    widths = tuple([width for _, width in box])
    found = detect_iter_map(read, axes, TRUE, widths, bounds)
    sizes = tuple(axes.values())
    return (
        IndexMap("", tuple(axes), read, sizes, sizes, widths, found) if found is not None and found.bijective else None
    )


def _is_made(producer: Block, written: Sequence[Var], box: Box, bounds: Bounds) -> bool:
    """Tells whether *box* lies inside the result of *producer*, whose axes *written* index it."""
    extents = {a.var: a.extent for a in producer.axes}
    return all(
        prove(low >= ZERO, bounds) and prove(low + width <= extents[v], bounds)
        for v, (low, width) in zip(written, box, strict=True)
    )
