"""Split reductions (split-K): blocks of a grid, or groups of a block's threads, compute partial sums of a long reduction.

for i, j, r: C[i, j] += A[i, r] * B[r, j]       for p, i, j, q: T[p, i, j] += A[i, p * 64 + q] * B[p * 64 + q, j]
                                          ->    for i, j, p:    C[i, j] += T[p, i, j]
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

from weft.loop import AxisKind
from weft.schedule.cursors.state import BlockRef, LoopRef
from weft.schedule.rules.block_facts import block_of, loops_of, spatial_axes
from weft.schedule.rules.grid.thread_reduction import reduce_in_threads
from weft.schedule.rules.grid.tile_axes import TileAxes, own_loops
from weft.schedule.schedule import Schedule
from weft.support.errors import ScheduleError


def partial_sums(
    s: Schedule, ref: BlockRef, axes: TileAxes, factors: Sequence[int | None], part: int
) -> tuple[BlockRef, TileAxes]:
    """Splits the axis of the steps by *factors*, and sums by itself for each iteration of loop number *part* of those.

    Returns the block of these sums, and its axes, of which the innermost loop of the split is that of the steps.
    """
    before = spatial_axes(block_of(s, ref))
    depth = own_loops(s, ref, 0)[axes.depth.var]
    loops = s.split(depth, factors)
    if [s.extent(f) for f, n in zip(loops, factors, strict=True) if n] != [n for n in factors if n]:
        raise ScheduleError(f"{ref.name} has no such parts")
    reductions_first(s, ref)
    sums = s.rfactor(ref, loops[part], 0)
    block = block_of(s, sums)
    moved = dict(zip(before, spatial_axes(block)[1:], strict=True))
    steps = [a for a, b in zip(block.axes, block.bindings, strict=True) if b is loops[-1].var]
    if len(steps) != 1:
        raise ScheduleError(f"the partial sums of {ref.name} have no axis of their own for the steps")
    return sums, replace(axes, row=moved[axes.row], column=moved[axes.column], depth=steps[0])


def reductions_first(s: Schedule, ref: BlockRef) -> list[LoopRef]:
    """Moves the loops over the terms of a reduction around those over its results, as `rfactor` takes them; returns them."""
    reduced = loops_of(s, ref, s.loops(ref), AxisKind.REDUCE)
    s.reorder([*reduced, *[loop for loop in s.loops(ref) if loop not in reduced]])
    return reduced


def split_k(
    s: Schedule, ref: BlockRef, axes: TileAxes, parts: int, threads: int, apply: Callable[[BlockRef, TileAxes], None]
) -> None:
    """Applies a tile to a contraction, or to each of several *parts* of its terms (split-K).

    The sums of parts are added by a second kernel, of blocks of *threads* threads. Raises `ScheduleError` where it can't.
    """
    if parts == 1:
        apply(ref, axes)
        return
    apply(*partial_sums(s, ref, axes, [parts, None], 0))
    if not reduce_in_threads(s, ref, threads):
        raise ScheduleError(f"{ref.name} does not add the sums of parts")
