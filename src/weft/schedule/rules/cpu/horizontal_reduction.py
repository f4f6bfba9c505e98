"""Reducing along a contiguous axis: partial results in the lanes of several vectors, combined by halves at the end.

    for k in range(0, 164):             for k0 in range(0, 3):
        C[0] += A[k]            ->          for l in vectorized(0, 64):
                                                if k0 * 64 + l < 164: C_rf[l] += A[k0 * 64 + l]
                                        for k1 in unrolled(0, 4):
                                            for l in vectorized(0, 16): D[l] += C_rf[k1 * 16 + l]
                                        for l in vectorized(0, 8): E[l] = D[l] + D[8 + l]
                                        ...

Lanes beyond the end of the last piece keep their partial results.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import prod

from weft.cost import FALLBACK_SIZE, SHORTEST_REDUCTION, Accumulators, Planner, accumulator_plans
from weft.ir import Var
from weft.loop import Load
from weft.schedule.cursors.state import BlockRef, LoopRef
from weft.schedule.legality.trust import proving
from weft.schedule.rules.block_facts import block_of, inputs_of, reads_along, reduce_axes, uses_axis
from weft.schedule.rules.cpu.parallel import sizes
from weft.schedule.schedule import Schedule
from weft.support.errors import ScheduleError


def reduce_horizontally(s: Schedule, ref: BlockRef, loops: Sequence[LoopRef], p: Planner) -> None:
    """Gives *ref*, a reduction over its innermost loops *loops*, partial results in lanes.

    The loop along which its inputs are contiguous is fused with as many others as possible. A reduction that can't be factored
    (`rfactor`) stays as it is.
    """
    first, last = _contiguous(s, ref, loops)
    extents = sizes(s, loops)
    if (
        prod(extents[first : last + 1]) < SHORTEST_REDUCTION
    ):  # elements further apart, one by one, are still better than one sum
        first = last = max(range(len(loops)), key=extents.__getitem__)
    lanes = p.lanes(block_of(s, ref).writes[0].buffer.dtype.bits)
    for start in range(first, last + 1):
        run = slice(start, last + 1)
        is_open = any(s.extent(f) is None for f in loops[run])
        extent = min(prod(extents[run]), FALLBACK_SIZE) if is_open else prod(extents[run])
        width = _width(ref, extent, lanes, p, is_open=is_open)
        try:
            with proving():
                if start < last:  # fused axes may not come apart by pieces of vectors
                    _reduce_in_lanes(Schedule(s.program), ref, loops, run, width)
                _reduce_in_lanes(s, ref, loops, run, width)
        except ScheduleError:  # nor may its operator be known to be associative, or its loops its own
            continue
        return


def _width(ref: BlockRef, extent: int, lanes: int, p: Planner, *, is_open: bool) -> tuple[int, int] | None:
    """Returns how many partial results there are of *extent* elements, and how many of them are one vector; None for too few.

    The extent is a guess where it *is_open*.
    """
    if extent < SHORTEST_REDUCTION:
        return None
    lanes = min(lanes, 1 << (extent - 1).bit_length())
    return lanes * p.decide(
        ref.name, Accumulators, lambda m: accumulator_plans(extent, lanes, m, is_open=is_open)
    ).vectors, lanes


def _contiguous(s: Schedule, ref: BlockRef, loops: Sequence[LoopRef]) -> tuple[int, int]:
    """Returns the numbers of the first and the last of the *loops* that together run along contiguous elements of the inputs."""
    block = block_of(s, ref)
    variables = [a.var for a in reduce_axes(block)]
    reads = [x for x in inputs_of(block) if any(uses_axis(x, v) for v in variables)]
    last = max(range(len(loops)), key=lambda n: (sum(reads_along(x, variables[n]) for x in reads), n))
    first = last
    while first > 0 and all(_continues(x, variables[first - 1], variables[first]) for x in reads):
        first -= 1
    return first, last


def _continues(load: Load, outer: Var, inner: Var) -> bool:
    """Tells whether *load* reads whole runs along *inner* that follow each other along *outer*."""
    if not uses_axis(load, outer) and not uses_axis(load, inner):
        return True
    places = [n for n, i in enumerate(load.indices) if i is inner]
    return len(places) == 1 and places[0] > 0 and load.indices[places[0] - 1] is outer


def _reduce_in_lanes(
    s: Schedule, ref: BlockRef, loops: Sequence[LoopRef], run: slice, width: tuple[int, int] | None
) -> None:
    """Fuses those of *loops* that *run* names and splits them into pieces of partial results; the other loops go outside."""
    along = list(loops[run])
    outer = [f for f in loops if f not in along]
    s.reorder([*outer, *along])
    last = s.fuse(along) if len(along) > 1 else along[0]
    if width is None:
        return
    steps, lane = s.split(last, [None, width[0]])
    _vectors(s, s.rfactor(ref, lane), [*outer, steps], lane)
    combine_lanes(s, ref, *width)


def combine_lanes(s: Schedule, ref: BlockRef, width: int, lanes: int) -> None:
    """Combines the *width* partial results of *ref* by halves, but an odd number of vectors one by one."""
    while width > 2:
        width = lanes if width % (2 * lanes) and width > lanes else width // 2
        steps, lane = s.split(s.loops(ref)[-1], [None, width])
        _vectors(s, s.rfactor(ref, lane), [steps], lane)
        s.unroll(steps)
    s.unroll(s.loops(ref)[-1])


def _vectors(s: Schedule, partial: BlockRef, steps: Sequence[LoopRef], lane: LoopRef) -> None:
    """Makes vectors in registers of partial results, one for each value of *lane*, with the loops over *steps* outside."""
    s.set_scope(partial, "register")
    steps = [f for f in steps if s.extent(f) != 1]
    if steps:
        s.reorder([*steps, lane])
        s.vectorize(s.loops(s.decompose_reduction(partial, steps[0]))[-1])
    s.vectorize(lane)
