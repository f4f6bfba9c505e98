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
from weft.schedule.inlining import check_plain, replace_loads, with_body
from weft.schedule.placing import axis_of_index, check_intermediate, check_movable, readers
from weft.schedule.primitive import primitive
from weft.schedule.state import BlockRef, Change, refuse
from weft.schedule.tree import block_path, blocks_in, drop_alloc, regions_of, replace, the_block


@primitive
def reverse_compute_inline(fn: Function, block: BlockRef) -> tuple[Change, None]:
    """Applies *block* to the value that its one producer computes, and removes the value's buffer.

    Legal for a block that is one assignment, reads each element of the producer's result once, and is its only reader;
    the producer must not be a reduction.
    """
    path = block_path(fn, block)
    consumer = the_block(path)
    write = check_plain(consumer)
    producer = _producer(fn, consumer)
    source = check_plain(producer)
    to_producer = _axes(consumer, producer, source)

    def value(indices: tuple[Expr, ...]) -> Expr:
        return source.value

    inlined = replace_loads(write, source.buffer, value)
    new = substitute(inlined, to_producer)
    without = fn.with_body(replace(check_movable(fn, path, consumer), NOTHING))
    body = replace(block_path(without, BlockRef(producer.name)), with_body(producer, new, None))
    return Change(fn.with_body(drop_alloc(body, source.buffer))), None


def _producer(fn: Function, consumer: Block) -> Block:
    """Returns the one block before the consumer that makes an intermediate result only the consumer reads."""
    read = {r.buffer for r in consumer.reads}
    blocks = blocks_in(fn.body)
    before = blocks[: blocks.index(consumer)]
    makers = [b for b in before if any(r.buffer in read for r in b.writes)]
    if len(makers) != 1:
        refuse(f"{consumer.name} has {len(makers)} producers, not one", consumer)
    maker = makers[0]
    check_intermediate(fn, maker)
    if readers(fn, maker) != [consumer]:
        refuse(f"{maker.name} has other readers than {consumer.name}", maker)
    return maker


def _axes(consumer: Block, producer: Block, source: Store) -> dict[Var, Expr]:
    """Returns the producer's index for each axis of the consumer; every axis must be read exactly once."""
    regions = regions_of(consumer.reads, source.buffer)
    axes = axis_of_index(consumer, regions[0])
    named = {v: i for v, i in zip(axes, source.indices, strict=True) if v is not None}
    if len(regions) != 1 or len(named) != len(consumer.axes) or None in axes:
        refuse(f"{consumer.name} does not read {source.buffer.name} at its plain axes, each once", consumer)
    if len(set(source.indices)) != len(producer.axes) or any(not isinstance(i, Var) for i in source.indices):
        refuse(f"{producer.name} does not write {source.buffer.name} at its plain axes, each once", producer)
    return named
