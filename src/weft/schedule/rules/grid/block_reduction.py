"""A reduction by all threads of a block, where there are too few results for each thread to have one of its own.

for i: for k: C[i] += A[i, k]        ->      for i in bound(0, n, thread="blockIdx.x"):
                                                 for k1 in bound(0, 64, thread="threadIdx.x"):
                                                     for k0: c[k1] += A[i, k0 * 64 + k1]
                                                 C[i] = the sum of all c, in a tree
"""

from __future__ import annotations

from weft.cost import BlockReduction, Planner, block_reduction_plans, elements
from weft.loop import AxisKind
from weft.schedule.cursors.state import BlockRef
from weft.schedule.rules.block_facts import block_of, loops_of, reduce_axes, spatial_axes
from weft.schedule.schedule import Schedule
from weft.support.errors import ScheduleError


def reduce_in_blocks(s: Schedule, ref: BlockRef, p: Planner) -> bool:
    """Reduces for one result by a block of threads, if that pays; tells whether it did."""
    block, program = block_of(s, ref), s.program
    results, terms = elements(spatial_axes(block)), elements(reduce_axes(block))

    def is_legal(choice: BlockReduction) -> bool:
        return choice.threads == 0 or _can_share(s, ref, choice.threads)

    threads = p.decide(ref.name, BlockReduction, lambda m: block_reduction_plans(results, terms, m), is_legal).threads
    if threads:
        _share(s, ref, threads)
    return threads > 0 and s.program is not program


def _can_share(s: Schedule, ref: BlockRef, threads: int) -> bool:
    """Tells whether partial results may be combined in any order: an index of the largest element, say, may not."""
    try:
        _share(Schedule(s.program), ref, threads)
    except ScheduleError:
        return False
    return True


def _share(s: Schedule, ref: BlockRef, threads: int) -> None:
    loops = list(s.loops(ref))
    spatial, summed = (loops_of(s, ref, loops, kind) for kind in (AxisKind.SPATIAL, AxisKind.REDUCE))
    if not spatial or not summed:
        raise ScheduleError(f"{ref.name} has no loop over results, or none to share")
    if loops != [*spatial, *summed]:
        s.reorder([*spatial, *summed])
    results = s.fuse(spatial) if len(spatial) > 1 else spatial[0]
    terms = s.fuse(summed) if len(summed) > 1 else summed[0]
    _, shared = s.split(terms, [None, threads])
    s.cross_thread_reduce(ref, shared, "threadIdx.x")
    s.bind(results, "blockIdx.x")
