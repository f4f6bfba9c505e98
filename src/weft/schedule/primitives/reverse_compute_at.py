"""`reverse_compute_at`: a consumer moves into a loop of its producers, and uses there just what an iteration makes.

for i in range(0, 4):                   for i in range(0, 4):
    for j in range(0, 8):                   for j in range(0, 8):
        A[i, j] = f(i, j)      ->               A[i, j] = f(i, j)
for i in range(0, 4):                       for ax in range(0, 8):
    for j in range(0, 8):                       B[i, ax] = A[i, ax] * 2
        B[i, j] = A[i, j] * 2
"""

from __future__ import annotations

from weft.ir.bounds import Bounds
from weft.ir.expr import ONE, Expr, Var, eq
from weft.ir.prove import prove
from weft.ir.simplify import simplify
from weft.loop.nodes import NOTHING, AxisKind, Block, Buffer, For, Function, Range
from weft.schedule.bijection import is_injective
from weft.schedule.nest import insert_beside, nest_over, parts_of
from weft.schedule.placing import (
    axis_of_index,
    check_movable,
    ranges_for,
    read_buffers,
    readers,
    reduce_loops,
    written_buffers,
)  # fmt: skip
from weft.schedule.primitive import primitive
from weft.schedule.rebind import uses
from weft.schedule.region import touched
from weft.schedule.state import BlockRef, Change, LoopRef, refuse
from weft.schedule.tree import (
    Path,
    block_path,
    blocks_in,
    bounds_on,
    loop_path,
    loops_on,
    regions_of,
    replace,
    symbols_of,
    the_block,
    the_loop,
)  # fmt: skip


@primitive
def reverse_compute_at(fn: Function, block: BlockRef, loop: LoopRef) -> tuple[Change, None]:
    """Moves *block* to just after its producers in *loop*, where it runs for the box that an iteration makes.

    Legal if the iterations' boxes tile the producers' buffers, each complete at the end of its iteration, and if all else that
    the block reads is made earlier.
    """
    path = block_path(fn, block)
    consumer = the_block(path)
    target_path = loop_path(fn, loop)
    if the_loop(target_path) in path:
        refuse(f"{consumer.name} is in the loop {loop.var.name} already", consumer)
    made_here = _producers(fn, consumer, target_path)
    ranges: dict[Var, Range] = {}
    for producer, buffer in made_here:
        ranges = _consumed(fn, consumer, producer, buffer, target_path, ranges)
    _check_tiled(fn, consumer, target_path, ranges)
    without = fn.with_body(replace(check_movable(fn, path, consumer), NOTHING))
    target_path = loop_path(without, loop)
    target = the_loop(target_path)
    made = nest_over(consumer, ranges, bounds_on(target_path, fn))
    last = [p for p in parts_of(target) if any(b is x for x in blocks_in(p) for b, _ in made_here)][-1]
    return Change(without.with_body(replace(target_path, insert_beside(target, last, made, before=False)))), None


def _producers(fn: Function, consumer: Block, target_path: Path) -> list[tuple[Block, Buffer]]:
    """Returns the blocks in the loop that make what *consumer* reads; refuses other inputs that are not made before it."""
    target = the_loop(target_path)
    inside = blocks_in(target)
    before = blocks_in(fn.body)
    before = before[: before.index(inside[0])]
    wanted = read_buffers(consumer)
    for b in blocks_in(fn.body):
        if b is not consumer and b not in inside and b not in before and set(written_buffers(b)) & set(wanted):
            refuse(f"{b.name}, which comes after the loop, makes what {consumer.name} reads", b)
    found = [(b, x) for b in inside for x in written_buffers(b) if x in wanted]
    if not found:
        refuse(f"nothing in the loop {target.var.name} makes what {consumer.name} reads", target)
    for reader in readers(fn, consumer):
        if reader in inside:
            refuse(f"{reader.name}, in the loop, reads what {consumer.name} makes", reader)
    return found


def _consumed(
    fn: Function, consumer: Block, producer: Block, buffer: Buffer, target_path: Path, known: dict[Var, Range]
) -> dict[Var, Range]:
    """Returns the ranges of the consumer's axes that go with what an iteration makes of *buffer*."""
    target = the_loop(target_path)
    bounds = bounds_on(target_path, fn)
    path = block_path(fn, BlockRef(producer.name))
    outer = loops_on(path)[: [f.var for f in loops_on(path)].index(target.var) + 1]
    if any(f in outer for f in reduce_loops(path)):
        refuse(f"{producer.name} is not finished when an iteration of {target.var.name} ends", producer)
    if not is_injective(fn, path):
        refuse(f"{producer.name} may compute an element more than once", producer)
    box = touched(target.body, buffer, bounds, symbols_of(fn), writes=True)
    if box is None:
        refuse(f"{producer.name} does not write {buffer.name} in the loop", producer)
    _check_filled(producer, path, target, box, bounds)
    for region in regions_of(consumer.reads, buffer):
        if None in axis_of_index(consumer, region):
            refuse(f"{consumer.name} does not read {buffer.name} at its plain axes", consumer)
    return ranges_for(consumer, consumer.reads, buffer, box, known)


def _check_filled(producer: Block, path: Path, target: For, box: tuple[Range, ...], bounds: Bounds) -> None:
    """Refuses a box with holes: it must have as many elements as the inner loops have iterations."""
    loops = loops_on(path)
    inner = loops[[f.var for f in loops].index(target.var) + 1 :]
    spatial = [b for a, b in zip(producer.axes, producer.bindings, strict=True) if a.kind is AxisKind.SPATIAL]
    made: Expr = ONE
    for f in inner:
        made = made * f.extent if any(uses(b, f.var) for b in spatial) else made
    size: Expr = ONE
    for r in box:
        size = size * r.extent
    if not prove(eq(simplify(made, bounds), simplify(size, bounds)), bounds):
        refuse(f"an iteration of {target.var.name} does not fill a box of what {producer.name} makes", target)


def _check_tiled(fn: Function, consumer: Block, target_path: Path, ranges: dict[Var, Range]) -> None:
    """Refuses outer loops that the consumer would be repeated by: each must move the box of some axis."""
    for f in loops_on((*target_path, consumer)):
        if not any(uses(r.begin, f.var) for r in ranges.values()) and f.extent is not ONE:
            refuse(f"every iteration of {f.var.name} would run all of {consumer.name} again", f)
