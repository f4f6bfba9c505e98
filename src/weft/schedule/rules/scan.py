"""The rule for recurrences: time stays outermost and in order, and each step is computed in vectors.

Within a step, a reduction along whose last axis its inputs are contiguous computes a few vectors of results at once, with the
reduction outside of them; any other is cut into partial results, in lanes. What does not depend on a state was computed before,
for all steps at once, and is left to the other rules, but for reductions that these would not see beside a recurrence.
"""

from __future__ import annotations

from weft.ir.expr import Var
from weft.ir.rewrite import free_vars
from weft.loop.nodes import AxisKind
from weft.schedule.rules.facts import FALLBACK_SIZE, block_of, is_reduction, is_tileable, reduce_axes
from weft.schedule.rules.lanes import reduce_in_lanes
from weft.schedule.rules.parallel import parallelize
from weft.schedule.rules.vector import reduce_in_vectors, vectorize_last
from weft.schedule.schedule import Schedule
from weft.schedule.state import BlockRef, LoopRef
from weft.schedule.tree import blocks_in
from weft.targets.target import Target


def schedule_scans(s: Schedule, target: Target) -> set[BlockRef]:
    """Schedules the blocks of each step of a recurrence; returns those that are in place, none if there is no recurrence."""
    time = _time_loops(s)
    placed: set[BlockRef] = set()
    before = s.blocks()
    for ref in before if time else ():
        loops = list(s.loops(ref))
        depth = max([n + 1 for n, f in enumerate(loops) if f.var in time], default=0)
        if depth or (is_reduction(block_of(s, ref)) and not is_tileable(s, ref)):
            _schedule(s, ref, loops[depth:], target)
            placed.add(ref)
    return placed | set(s.blocks()).difference(before)


def _time_loops(s: Schedule) -> set[Var]:
    """Returns the loops that blocks must run in order."""
    bound = [(a, b) for x in blocks_in(s.function.body) for a, b in zip(x.axes, x.bindings, strict=True)]
    return {v for a, b in bound if a.kind is AxisKind.ORDERED for v in free_vars(b)}


def _schedule(s: Schedule, ref: BlockRef, loops: list[LoopRef], target: Target) -> None:
    """Schedules a block by its own *loops*, which are inside those over time."""
    block = block_of(s, ref)
    lanes = target.lanes(block.writes[0].buffer.dtype.bits)
    work = 1
    for f in loops:
        work *= s.extent(f) or FALLBACK_SIZE
    if not loops:
        return
    if not is_reduction(block):
        parallelize(s, vectorize_last(s, loops, lanes), work, target)
    elif is_tileable(s, ref):
        parallelize(s, reduce_in_vectors(s, ref, loops, lanes), work, target)
    else:
        reduce_in_lanes(s, ref, loops[-len(reduce_axes(block)) :], lanes)
