"""`rolling_buffer`: a producer in a loop keeps the elements that the next iteration needs again, and computes only the new ones.

for i in range(0, 6):                   for ax in range(0, 2):
    for ax in range(0, 3):                  A[ax % 3] = f(ax)
        A[i + ax] = f(i + ax)  ->       for i in range(0, 6):
    B[i] = A[i] + A[i + 2]                  A[(i + 2) % 3] = f(i + 2)
                                            B[i] = A[i % 3] + A[(i + 2) % 3]

Halide's sliding window with storage folding: Ragan-Kelley et al., "Halide" (PLDI 2013), section 4.3.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from weft.ir import ZERO, Const, Var, index, linear_terms, simplify, substitute
from weft.loop import Alloc, Block, Buffer, For, Function, LoopKind, Range, rename_fresh, seq
from weft.schedule.cursors.loop_nest import fresh_block_name, nest_over, own_nest
from weft.schedule.cursors.primitive import primitive
from weft.schedule.cursors.rebind import uses
from weft.schedule.cursors.state import BlockRef, Change, LoopRef, called, refuse
from weft.schedule.cursors.tree import (
    Path,
    block_path,
    blocks_in,
    bounds_on,
    drop_alloc,
    loop_path,
    replace,
    symbols_of,
    the_block,
    the_loop,
)
from weft.schedule.legality.access_region import touched
from weft.schedule.legality.flow_dependence import check_flat, check_structured, is_before
from weft.schedule.legality.placement import (
    axis_of_index,
    check_intermediate,
    check_movable,
    ranges_for,
    readers,
    written_buffers,
)
from weft.schedule.legality.predicate_bounds import check_recomputable
from weft.schedule.legality.reaching_writes import check_reaching_writes
from weft.schedule.rewriting.storage_folding import with_folded_storage


@primitive
def rolling_buffer(fn: Function, block: BlockRef, loop: LoopRef) -> tuple[Change, BlockRef]:
    """Lets *block*, which was placed in *loop*, compute only new elements; returns the block that computes the initial ones.

    The new block computes, before the loop, the elements of the first window that a previous iteration would have left. The
    buffer becomes as long as the window that an iteration needs. Legal for a serial loop, along which the window moves by a
    constant step in one dimension, if all consumers are in the loop after the producer and its inputs are computed before it.
    """
    path = block_path(fn, block)
    producer = the_block(path)
    _check(fn, path, producer, the_loop(loop_path(fn, loop)))
    check_movable(fn, path, producer)
    buffer = written_buffers(producer)[0]
    bare = fn.with_body(drop_alloc(fn.body, buffer))
    target_path = loop_path(bare, loop)
    target = the_loop(target_path)
    ranges = _needed(fn, producer, buffer, target_path)
    window = _window(producer, target, ranges)
    steady, first = window.ranges(ranges, target.var)
    name = fresh_block_name(fn, f"{producer.name}_first")
    again = nest_over(producer, steady, bounds_on(target_path, fn))
    start = rename_fresh(nest_over(_named(producer, name), first, bounds_on(target_path[:-1], fn)))
    inside = replace(own_nest(block_path(bare, block), target_path)[len(target_path) - 1 :], again)
    moved = fn.with_body(replace(target_path, Alloc(buffer, seq(start, inside))))
    for made in (name, producer.name):
        check_reaching_writes(fn, producer.name, moved, made)
    dimension = axis_of_index(producer, producer.writes[0]).index(window.axis)
    return Change(with_folded_storage(moved, buffer, dimension, window.width)), BlockRef(name)


@dataclass(frozen=True)
class _Window:
    """The window that an iteration needs along *axis*: *width* elements, *step* further than the iteration before."""

    axis: Var
    width: int
    step: int

    def ranges(self, needed: Mapping[Var, Range], var: Var) -> tuple[dict[Var, Range], dict[Var, Range]]:
        """Returns the ranges that each iteration computes, and those that are computed before the first."""
        begin, kept = needed[self.axis].begin, index(self.width - self.step)
        steady = {**needed, self.axis: Range(simplify(begin + kept), index(self.step))}
        first = {**needed, self.axis: Range(simplify(substitute(begin, {var: ZERO})), kept)}
        return steady, first


def _check(fn: Function, path: Path, producer: Block, target: For) -> None:
    check_structured(fn.body)
    check_flat(fn.body)
    check_intermediate(fn, producer)
    if target not in path:
        refuse(f"{producer.name} is not in the loop {called(target.var)}", producer, "compute it there first")
    if target.kind is not LoopKind.SERIAL or target.begin is not ZERO:
        refuse(
            f"the loop {called(target.var)} is {target.kind}, or does not begin at 0", target, "choose a serial loop"
        )
    if len(own_nest(path, [target])) > path.index(target) + 3:
        refuse(
            f"{producer.name} is in another loop inside {called(target.var)}, too",
            producer,
            "choose the innermost loop around the block",
        )
    if len(producer.writes) != 1 or None in axis_of_index(producer, producer.writes[0]):
        refuse(
            f"{producer.name} does not write one buffer at its plain axes",
            producer,
            "only a block whose axes are the indices of its result can roll",
        )
    check_recomputable(fn, path)
    inside = set(blocks_in(target))
    for user in readers(fn, producer):
        if user not in inside or not is_before(path, block_path(fn, BlockRef(user.name))):
            refuse(
                f"its consumer {user.name} does not come after it in the loop {called(target.var)}",
                user,
                "compute_at the block there first",
            )


def _needed(fn: Function, producer: Block, buffer: Buffer, target_path: Path) -> dict[Var, Range]:
    target = the_loop(target_path)
    bounds = bounds_on(target_path, fn)
    box = touched(target.body, buffer, bounds, symbols_of(fn), writes=False)
    if box is None:
        refuse(
            f"nothing reads what {producer.name} computes", producer, "compute_at it in a loop of its consumer first"
        )
    return ranges_for(producer, producer.writes, buffer, box, {}, bounds)


def _window(producer: Block, target: For, ranges: Mapping[Var, Range]) -> _Window:
    """Returns the window that moves along with *target*; refuses one without overlap, or without a constant step."""
    moving = [v for v, r in ranges.items() if uses(r.begin, target.var)]
    if len(moving) != 1:
        refuse(
            f"what is needed of {producer.name} moves along {len(moving)} of its axes, not one",
            producer,
            "choose a loop that moves the window along one axis",
        )
    needed = ranges[moving[0]]
    found = linear_terms(needed.begin, [target.var])
    step = None if found is None else found[0][target.var]
    if not isinstance(step, Const) or not isinstance(needed.extent, Const) or int(step.value) < 1:
        refuse(
            f"what is needed of {producer.name} does not move by a constant step",
            producer,
            "choose a loop that moves the window by the same step each time",
        )
    if int(step.value) >= int(needed.extent.value):
        refuse(
            f"no two iterations of {called(target.var)} need the same of {producer.name}",
            producer,
            "there is nothing to keep from one iteration to the next",
        )
    return _Window(moving[0], int(needed.extent.value), int(step.value))


def _named(b: Block, name: str) -> Block:
    return Block(name, b.axes, b.bindings, b.predicate, b.reads, b.writes, b.init, b.body, b.notes)
