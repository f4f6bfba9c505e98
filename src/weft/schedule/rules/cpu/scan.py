"""The rule for recurrences, and for updates in order: time stays in order, and each step is computed in vectors.

Loops outside of time, such as those over the rows that updates along an axis go to, are shared among threads. Where there are
none, columns are, along which updates go to elements of their own: each thread applies all updates, in order, to its columns.

    for i in range(0, 50000):                           for c in parallel(0, 2):
        for j in range(0, 64):                  ->          for i in range(0, 50000):
            y[t[i], j] = y[t[i], j] + u[i, j]                   for j in vectorized(0, 32): ...

Within a step, a reduction along whose last axis its inputs are contiguous computes a few vectors of results at once, with the
reduction outside of them; any other gets partial results in lanes. Tensors that do not depend on a state are computed before,
for all steps at once, by the other rules, but for reductions that these do not handle beside a recurrence.
"""

from __future__ import annotations

from itertools import takewhile

from weft.cost import Planner
from weft.ir import Var, free_vars
from weft.loop import AxisKind
from weft.schedule.cursors.state import BlockRef, LoopRef
from weft.schedule.cursors.tree import blocks_in
from weft.schedule.rules.block_facts import block_of, is_reduction, is_tileable, reduce_axes
from weft.schedule.rules.cpu.horizontal_reduction import reduce_horizontally
from weft.schedule.rules.cpu.parallel import parallelize
from weft.schedule.rules.cpu.share_columns import share_columns
from weft.schedule.rules.cpu.vectorize_axis import reduce_in_vectors, vectorize_last
from weft.schedule.schedule import Schedule


def schedule_scans(s: Schedule, p: Planner) -> set[BlockRef]:
    """Schedules the blocks of each step of a recurrence; returns the blocks placed, none if there is no recurrence."""
    time = _time_loops(s)
    placed: set[BlockRef] = set()
    before = s.blocks()
    for ref in before if time else ():
        loops = list(s.loops(ref))
        depth = max([n + 1 for n, f in enumerate(loops) if f.var in time], default=0)
        if depth or (is_reduction(block_of(s, ref)) and not is_tileable(s, ref)):
            inner = share_columns(s, ref, loops[:depth], loops[depth:], p) if loops[0].var in time else None
            if inner is not None:
                vectorize_last(s, inner, p.lanes(block_of(s, ref).writes[0].buffer.dtype.bits))
                placed.add(ref)
                continue
            _schedule(s, ref, loops[depth:], p)
            parallelize(s, ref, list(takewhile(lambda f: f.var not in time, loops[:depth])), p)
            placed.add(ref)
    return placed | set(s.blocks()).difference(before)


def _time_loops(s: Schedule) -> set[Var]:
    """Returns the loops that blocks must run in order."""
    bound = [(a, b) for x in blocks_in(s.function.body) for a, b in zip(x.axes, x.bindings, strict=True)]
    return {v for a, b in bound if a.kind is AxisKind.ORDERED for v in free_vars(b)}


def _schedule(s: Schedule, ref: BlockRef, loops: list[LoopRef], p: Planner) -> None:
    """Schedules a block by its own *loops*, which are inside those over time."""
    block = block_of(s, ref)
    lanes = p.lanes(block.writes[0].buffer.dtype.bits)
    if not loops:
        return
    if not is_reduction(block):
        parallelize(s, ref, vectorize_last(s, loops, lanes), p)
    elif is_tileable(s, ref):
        parallelize(s, ref, reduce_in_vectors(s, ref, loops, lanes), p)
    else:
        reduce_horizontally(s, ref, loops[-len(reduce_axes(block)) :], p)
