"""`reverse_compute_inline`: a consumer's formula is applied where its producer writes.

for i in range(0, 8):
    A[i] = f(i)                ->       for i in range(0, 8):
for i in range(0, 8):                       B[i] = f(i) + 1
    B[i] = A[i] + 1
"""

from __future__ import annotations

from weft.ir.expr import Expr, Var
from weft.ir.rewrite import substitute
from weft.loop.nodes import NOTHING, Block, Function, Store
from weft.schedule.bijection import instance_map
from weft.schedule.dependence import check_structured
from weft.schedule.inlining import axes_written, check_plain, replace_loads, with_body
from weft.schedule.inputs import check_inputs
from weft.schedule.placing import (
    axis_of_index,
    check_intermediate,
    check_movable,
    check_untouched,
    read_buffers,
    readers,
    written_buffers,
)  # fmt: skip
from weft.schedule.primitive import primitive
from weft.schedule.state import BlockRef, Change, refuse
from weft.schedule.tree import Path, block_path, blocks_in, drop_alloc, plain_store, regions_of, replace, the_block


@primitive
def reverse_compute_inline(fn: Function, block: BlockRef) -> tuple[Change, None]:
    """Applies *block* to the value that its producer computes, and removes the value's buffer.

    The producer is the last block before that makes something only *block* reads. Legal if both are one assignment, the producer
    no reduction, and *block* reads each element of its result once, at the same axes.
    """
    path = block_path(fn, block)
    consumer = the_block(path)
    check_structured(fn.body)
    write = check_plain(fn, path)
    if not _runs_all(fn, path):
        refuse(f"{consumer.name} may run some of its instances never", consumer)
    producer = _producer(fn, consumer)
    source = _source(fn, producer)
    check_untouched(fn, consumer, producer)
    to_producer = _axes(consumer, producer, source)

    def value(indices: tuple[Expr, ...]) -> Expr:
        return source.value

    new = substitute(replace_loads(write, source.buffer, value), to_producer)
    without = fn.with_body(replace(check_movable(fn, path, consumer), NOTHING))
    body = replace(block_path(without, BlockRef(producer.name)), with_body(producer, new, None))
    inlined = fn.with_body(drop_alloc(body, source.buffer))
    check_inputs(fn, consumer.name, inlined, producer.name)
    return Change(inlined), None


def _runs_all(fn: Function, path: Path) -> bool:
    found = instance_map(fn, path)
    return found is not None and found.surjective


def _producer(fn: Function, consumer: Block) -> Block:
    """Returns the last block before the consumer that makes an intermediate result only the consumer reads."""
    read = set(read_buffers(consumer))
    order = blocks_in(fn.body)
    makers = [b for b in order[: order.index(consumer)] if read & set(written_buffers(b))]
    if not makers:
        refuse(f"nothing makes what {consumer.name} reads", consumer)
    private = [b for b in makers if readers(fn, b) == [consumer]]
    if not private:
        refuse(f"{makers[-1].name} has other readers than {consumer.name}", makers[-1])
    check_intermediate(fn, private[-1])
    return private[-1]


def _source(fn: Function, producer: Block) -> Store:
    """Returns the assignment of the producer; refuses a reduction."""
    if producer.init is not None or any(r.buffer in written_buffers(producer) for r in producer.reads):
        refuse(f"{producer.name} is a reduction", producer)
    check_movable(fn, block_path(fn, BlockRef(producer.name)), producer)
    return plain_store(producer)


def _axes(consumer: Block, producer: Block, source: Store) -> dict[Var, Expr]:
    """Returns the producer's axis for each axis of the consumer, both of one extent; refuses any other pairing."""
    written = axes_written(producer, source)
    regions = regions_of(consumer.reads, source.buffer)
    axes = axis_of_index(consumer, regions[0])
    named = {v: i for v, i in zip(axes, written, strict=True) if v is not None}
    if len(regions) != 1 or len(named) != len(consumer.axes) or None in axes:
        refuse(f"{consumer.name} does not read {source.buffer.name} at its plain axes, each once", consumer)
    extents = {a.var: a.extent for a in producer.axes}
    for a in consumer.axes:
        if extents[named[a.var]] is not a.extent:
            refuse(f"{consumer.name} reads only a part of what {producer.name} computes", consumer)
    return dict(named)
