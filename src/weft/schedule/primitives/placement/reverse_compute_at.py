"""`reverse_compute_at`: a consumer moves into a loop of its producers, and consumes there just an iteration's results.

for i in range(0, 4):                   for i in range(0, 4):
    for j in range(0, 8):                   for j in range(0, 8):
        A[i, j] = f(i, j)      ->               A[i, j] = f(i, j)
for i in range(0, 4):                       for ax in range(0, 8):
    for j in range(0, 8):                       B[i, ax] = A[i, ax] * 2
        B[i, j] = A[i, j] * 2
"""

from __future__ import annotations

from weft.ir import Var
from weft.loop import NOTHING, Block, Buffer, Function, Range
from weft.schedule.cursors.loop_nest import insert_beside, nest_over, parts_of
from weft.schedule.cursors.primitive import primitive
from weft.schedule.cursors.state import BlockRef, Change, LoopRef, called, refuse
from weft.schedule.cursors.tree import (
    Path,
    block_path,
    blocks_in,
    bounds_on,
    loop_path,
    regions_of,
    replace,
    symbols_of,
    the_block,
    the_loop,
)
from weft.schedule.legality.access_region import touched
from weft.schedule.legality.bijection import is_bijective, starts_first
from weft.schedule.legality.flow_dependence import check_structured, is_before
from weft.schedule.legality.output_dependence import check_output_dependences
from weft.schedule.legality.placement import (
    check_outermost,
    check_untouched,
    check_whole,
    is_placeable,
    ranges_for,
    read_buffers,
    written_buffers,
)
from weft.schedule.legality.reaching_writes import check_reaching_writes


@primitive
def reverse_compute_at(fn: Function, block: BlockRef, loop: LoopRef) -> tuple[Change, None]:
    """Moves *block* to just after its producers in *loop*, where it runs for the box that an iteration computes.

    Legal if the iterations' boxes tile the region that the block reads, each complete at the end of its iteration, so that each
    instance of the block runs once, and if all its other inputs are computed earlier. The block gets new loops of its own.
    """
    path = block_path(fn, block)
    consumer = the_block(path)
    _check(fn, path, consumer, loop)
    target_path = loop_path(fn, loop)
    made_here = _made_in(consumer, target_path)
    ranges = _consumed(fn, consumer, made_here, target_path)
    without = fn.with_body(replace(check_whole(path, consumer), NOTHING))
    target_path = loop_path(without, loop)
    target = the_loop(target_path)
    nest = nest_over(consumer, ranges, bounds_on(target_path, fn))
    last = [p for p in parts_of(target) if any(r.buffer in made_here for b in blocks_in(p) for r in b.writes)][-1]
    moved = without.with_body(replace(target_path, insert_beside(target, last, nest, before=False)))
    check_reaching_writes(fn, block.name, moved, block.name)
    check_output_dependences(fn, moved, block.name)
    _check_moved(moved, consumer, block_path(moved, block), target.var.name)
    return Change(moved), None


def _check(fn: Function, path: Path, consumer: Block, loop: LoopRef) -> None:
    check_structured(fn.body)
    target = the_loop(loop_path(fn, loop))
    check_outermost(loop_path(fn, loop))
    check_outermost(path)
    if target in path:
        refuse(f"{consumer.name} is in the loop {called(target.var)} already", consumer, "choose a loop of a producer")
    if not is_before(loop_path(fn, loop), path):
        refuse(
            f"{consumer.name} comes before the loop {called(target.var)}",
            consumer,
            "choose a loop before it; compute_at moves a block to a later one",
        )
    if not is_bijective(fn, path):
        refuse(
            f"{consumer.name} may run some of its instances never or twice",
            consumer,
            "only a block whose loops run each instance once can move",
        )
    check_untouched(fn, consumer, target)


def _made_in(consumer: Block, target_path: Path) -> list[Buffer]:
    """Returns the buffers that *consumer* reads and blocks in the loop write."""
    target = the_loop(target_path)
    wanted = read_buffers(consumer)
    found = [x for b in blocks_in(target) for x in written_buffers(b) if x in wanted]
    if not found:
        refuse(
            f"nothing in the loop {called(target.var)} makes what {consumer.name} reads",
            target,
            "choose a loop of a producer",
        )
    return list(dict.fromkeys(found))


def _consumed(fn: Function, consumer: Block, made_here: list[Buffer], target_path: Path) -> dict[Var, Range]:
    """Returns the ranges of the consumer's axes that correspond to the box that an iteration computes."""
    target = the_loop(target_path)
    bounds = bounds_on(target_path, fn)
    ranges: dict[Var, Range] = {}
    for buffer in made_here:
        for region in regions_of(consumer.reads, buffer):
            if not is_placeable(consumer, region):
                refuse(
                    f"{consumer.name} does not read {buffer.name} at its plain axes",
                    consumer,
                    "a block can move to its producers if its axes are the indices of what it reads",
                )
        box = touched(target.body, buffer, bounds, symbols_of(fn), writes=True)
        if box is not None:
            ranges = ranges_for(consumer, consumer.reads, buffer, box, ranges, bounds)
    return ranges


def _check_moved(fn: Function, consumer: Block, path: Path, loop: str) -> None:
    """Refuses the block at its new place if a dependence is violated there."""
    if not is_bijective(fn, path):
        refuse(
            f"the iterations of {loop} would not run each instance of {consumer.name} exactly once",
            consumer,
            "choose a loop whose iterations make separate boxes, such as whole tiles",
        )
    if consumer.init is not None and not starts_first(path):
        refuse(
            f"{consumer.name} could combine values there before it starts from its initial ones",
            consumer,
            "choose a loop outside of those that the reduction depends on",
        )
