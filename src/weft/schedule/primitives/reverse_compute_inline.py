"""`reverse_compute_inline`: a consumer's formula is applied where its producer writes.

for i in range(0, 8):
    A[i] = f(i)                ->       for i in range(0, 8):
for i in range(0, 8):                       B[i] = f(i) + 1
    B[i] = A[i] + 1
"""

from __future__ import annotations

from weft.ir.expr import ONE, TRUE, ZERO, Expr, Var
from weft.ir.iter_map import detect
from weft.ir.prove import extremes, prove
from weft.ir.rewrite import substitute
from weft.ir.simplify import simplify
from weft.loop.nodes import NOTHING, Block, Function, Store
from weft.schedule.bijection import instance_map
from weft.schedule.dependence import check_structured
from weft.schedule.index_map import IndexMap
from weft.schedule.inlining import axes_written, check_plain, replace_loads, with_body
from weft.schedule.inputs import check_inputs
from weft.schedule.placing import (
    check_intermediate,
    check_movable,
    check_outermost,
    check_untouched,
    read_buffers,
    readers,
    written_buffers,
)  # fmt: skip
from weft.schedule.primitive import primitive
from weft.schedule.rebind import conjunction, with_bindings
from weft.schedule.region import at_loops
from weft.schedule.state import BlockRef, Change, refuse
from weft.schedule.tree import (
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


@primitive
def reverse_compute_inline(fn: Function, block: BlockRef) -> tuple[Change, None]:
    """Applies *block* to the value that its producer computes, and removes the value's buffer.

    The producer is the last block before that makes something only *block* reads. Legal if both are one assignment, the producer
    no reduction, and *block* reads each element of a box of its result once, as in a transposition, a slice or a reshape.
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
    check_inputs(fn, consumer.name, inlined, producer.name)
    return Change(inlined), None


def _runs_all(fn: Function, path: Path) -> bool:
    found = instance_map(fn, path)
    return found is not None and found.surjective


def _producer(fn: Function, consumer: Block) -> Block:
    """Returns the last block before the consumer that makes an intermediate result only the consumer reads."""
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
    """Returns what the consumer's axes are in terms of the producer's, and where the producer makes what the consumer reads.

    Refuses indices that are not one-to-one from the consumer's axes to a box of the producer's result.
    """
    written = axes_written(producer, source)
    regions = regions_of(consumer.reads, source.buffer)
    bounds = bounds_on((), fn)
    for a in (*consumer.axes, *producer.axes):
        bounds = bounds.bind(a.var, ZERO, a.extent - ONE)
    axes = {a.var: a.extent for a in consumer.axes}
    ends = [extremes(r.begin, list(axes), bounds) if r.extent is ONE else None for r in regions[0].ranges]
    boxes = [(low, simplify(high - low + ONE, bounds)) for low, high in [e for e in ends if e is not None]]
    read = [simplify(r.begin - low, bounds) for r, (low, _) in zip(regions[0].ranges, boxes, strict=False)]
    widths = tuple([width for _, width in boxes])
    found = detect(read, axes, TRUE, widths, bounds) if len(read) == len(ends) else None
    extents = {a.var: a.extent for a in producer.axes}
    made = all(
        prove(low >= ZERO, bounds) and prove(low + width <= extents[v], bounds)
        for v, (low, width) in zip(written, boxes, strict=False)
    )
    if len(regions) != 1 or found is None or not found.bijective or not made:
        refuse(
            f"{consumer.name} does not read each element of a box of {source.buffer.name} once",
            consumer,
            "inline the producer into it, or compute it in the producer's loops",
        )
    sizes = tuple(axes.values())
    layout = IndexMap("", tuple(axes), tuple(read), sizes, sizes, widths, found)
    inverse = layout.inverse([v - low for v, (low, _) in zip(written, boxes, strict=True)], bounds)
    limits = [c for v, (low, width) in zip(written, boxes, strict=True) for c in (low <= v, v < low + width)]
    return dict(zip(axes, inverse, strict=True)), conjunction(limits, bounds)
