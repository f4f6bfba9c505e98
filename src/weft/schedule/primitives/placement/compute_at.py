"""`compute_at`: a producer moves into a loop of its consumers, and computes there just the region that they need.

for i in range(0, 8):                   for i in range(0, 6):
    A[i] = f(i)                             for ax in range(0, 3):
for i in range(0, 6):          ->               A[i + ax] = f(i + ax)
    B[i] = A[i] + A[i + 2]                  B[i] = A[i] + A[i + 2]
"""

from __future__ import annotations

from weft.ir import ONE, TRUE, Bounds, Const, Expr, Var, index, prove, simplify
from weft.loop import NOTHING, AxisKind, Block, Function, Range, Region, Stmt
from weft.schedule.cursors.loop_nest import insert_beside, nest_over, parts_of
from weft.schedule.cursors.primitive import primitive
from weft.schedule.cursors.state import BlockRef, Change, LoopRef, called, refuse
from weft.schedule.cursors.tree import (
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
)
from weft.schedule.legality.access_region import at_loops, touched
from weft.schedule.legality.flow_dependence import check_structured, is_before
from weft.schedule.legality.output_dependence import check_output_dependences
from weft.schedule.legality.placement import (
    check_complete,
    check_intermediate,
    check_outermost,
    check_placeable,
    check_whole,
    ranges_for,
    readers,
    steps_of_index,
    written_buffers,
)
from weft.schedule.legality.predicate_bounds import check_recomputable, limits
from weft.schedule.legality.reaching_writes import check_reaching_writes


@primitive
def compute_at(
    fn: Function, block: BlockRef, loop: LoopRef, align: int = 1, guarded: bool = True
) -> tuple[Change, None]:
    """Moves *block* to just before its first consumer in *loop*, where it computes the box that an iteration needs.

    Legal if all consumers are in the loop, the block writes no output of the function, and no statement in between writes its
    inputs. Elements that several iterations need are recomputed by each. The block's own loops are new ones. The box
    is as long along the block's last spatial axis as a multiple of *align* or all of the axis, so that vectors are whole.
    Elements that the only consumer's guard leaves out are not computed, unless *guarded* is false, so that all boxes are whole.
    """
    path = block_path(fn, block)
    producer = the_block(path)
    _check(fn, path, producer, loop)
    if align < 1:
        refuse(f"no length is a multiple of {align}", producer, "align is a number of elements, such as a vector's")
    ranges = _needed(fn, producer, loop_path(fn, loop))
    ranges = ranges if align == 1 else _aligned(producer, ranges, align)
    without = fn.with_body(replace(check_whole(path, producer), NOTHING))
    target_path = loop_path(without, loop)
    target = the_loop(target_path)
    ends = _ends(fn, producer, loop, ranges, align) if guarded else {}
    made = nest_over(producer, ranges, bounds_on(target_path, fn), ends)
    first = next(p for p in parts_of(target) if _reads(p, producer))
    moved = without.with_body(replace(target_path, insert_beside(target, first, made, before=True)))
    check_reaching_writes(fn, block.name, moved, block.name)
    check_output_dependences(fn, moved, block.name)
    return Change(moved), None


def _check(fn: Function, path: Path, producer: Block, loop: LoopRef) -> None:
    check_structured(fn.body)
    check_intermediate(fn, producer)
    target = the_loop(loop_path(fn, loop))
    check_outermost(loop_path(fn, loop))
    check_outermost(path)
    if target in path:
        refuse(
            f"{producer.name} is in the loop {called(target.var)} already",
            target,
            "choose a loop of a consumer, or compute_root first",
        )
    if not is_before(path, loop_path(fn, loop)):
        refuse(
            f"{producer.name} comes after the loop {called(target.var)}",
            producer,
            "choose a loop after it; reverse_compute_at moves a block to an earlier one",
        )
    check_complete(fn, path)
    check_recomputable(fn, path)
    inside = set(blocks_in(target))
    users = readers(fn, producer)
    if not users:
        refuse(f"nothing reads what {producer.name} computes", producer, "compute_inline removes what is never read")
    for user in users:
        if user not in inside:
            refuse(
                f"its consumer {user.name} is not in the loop {called(target.var)}",
                user,
                "choose a loop around all consumers",
            )
    check_placeable(producer)


def _needed(fn: Function, producer: Block, target_path: Path) -> dict[Var, Range]:
    """Returns the range of each of the producer's spatial axes that one iteration of the loop needs."""
    target = the_loop(target_path)
    bounds = bounds_on(target_path, fn)
    ranges: dict[Var, Range] = {}
    for buffer in written_buffers(producer):
        box = touched(target.body, buffer, bounds, symbols_of(fn), writes=False)
        if box is not None:
            ranges = ranges_for(producer, producer.writes, buffer, box, ranges, bounds)
    return ranges


def _ends(fn: Function, producer: Block, loop: LoopRef, ranges: dict[Var, Range], align: int) -> dict[Var, Expr]:
    """Returns the ends of the needed ranges of axes where the single consumer's guard limits them to less than the extent.

    That of the axis that is rounded up to *align* is whole vectors from the range's begin.
    """
    use = _guarded_use(fn, producer)
    if use is None:
        return {}
    user, written, read = use
    path = block_path(fn, BlockRef(user.name))
    bounds = bounds_on(path, fn)
    inner = [f.var for f in loops_on(path[len(loop_path(fn, loop)) :])]
    spatial = {a.var: a.extent for a in producer.axes if a.kind is AxisKind.SPATIAL}
    longer = list(spatial)[-1:] if align > 1 else []
    found: dict[Var, Expr] = {}
    for counted, r in zip(steps_of_index(producer, written), read.ranges, strict=True):
        axis, step = counted or (None, 0)
        if axis not in ranges or axis not in spatial or step != 1 or r.extent is not ONE:
            continue
        for limit in limits(user, simplify(at_loops(user, r.begin), bounds), inner, bounds):
            if not limit.exact or limit.last is None:
                continue
            end = limit.last + ONE
            if axis not in longer and prove(end <= spatial[axis], bounds):
                found[axis] = end
            elif axis in longer and prove(ranges[axis].begin + ranges[axis].extent <= spatial[axis], bounds):
                found[axis] = _whole(end, ranges[axis].begin, align, bounds)
    return found


def _whole(end: Expr, begin: Expr, align: int, bounds: Bounds) -> Expr:
    """Returns *end*, or what is after it, so that a multiple of *align* is from *begin* to there."""
    length = simplify(end - begin + index(align - 1), bounds)
    return simplify(begin + length // index(align) * index(align), bounds)


def _guarded_use(fn: Function, producer: Block) -> tuple[Block, Region, Region] | None:
    """Returns the single consumer, if it has a guard, with the region that the producer writes and the region that it reads.

    None where there are several consumers, buffers or regions.
    """
    users, buffers = readers(fn, producer), written_buffers(producer)
    if len(users) != 1 or users[0].predicate is TRUE or len(buffers) != 1:
        return None
    (user,), (buffer,) = users, buffers
    written, read = regions_of(producer.writes, buffer), regions_of(user.reads, buffer)
    return (user, written[0], read[0]) if len(written) == len(read) == 1 else None


def _aligned(producer: Block, ranges: dict[Var, Range], align: int) -> dict[Var, Range]:
    """Returns *ranges* with that of the last spatial axis made longer, up to a multiple of *align* or all of the axis."""
    last = [a for a in producer.axes if a.kind is AxisKind.SPATIAL][-1:]
    if not last or last[0].var not in ranges:
        return ranges
    axis, needed = last[0], ranges[last[0].var]
    if not isinstance(needed.extent, Const) or not isinstance(axis.extent, Const):
        return ranges
    longer = -(-int(needed.extent.value) // align) * align
    return ranges | {axis.var: Range(needed.begin, index(min(longer, int(axis.extent.value))))}


def _reads(part: Stmt, producer: Block) -> bool:
    made = set(written_buffers(producer))
    return any(r.buffer in made for b in blocks_in(part) for r in b.reads)
