"""A reduction by all threads of a block, where there are too few results for each thread to have one of its own.

for i: for k: C[i] += A[i, k]        ->      for i in bound(0, n, thread="blockIdx.x"):
                                                 for k1 in bound(0, 64, thread="threadIdx.x"):
                                                     for k0: c[k1] += A[i, k0 * 64 + k1]
                                                 C[i] = the sum of all c, in a tree
"""

from __future__ import annotations

from weft.cost import BlockReduction, Planner, block_reduction_plans, elements
from weft.ir import free_vars
from weft.loop import AxisKind, Block
from weft.schedule.cursors.state import BlockRef
from weft.schedule.legality.trust import proving
from weft.schedule.rules.block_facts import block_of, inputs_of, loops_of, reduce_axes, spatial_axes
from weft.schedule.schedule import Schedule
from weft.support.errors import ScheduleError


def reduce_in_blocks(s: Schedule, ref: BlockRef, p: Planner) -> bool:
    """Reduces for one result by a block of threads, if that pays; tells whether it did."""
    block, program = block_of(s, ref), s.program
    results, terms = elements(spatial_axes(block)), elements(reduce_axes(block))

    def is_legal(choice: BlockReduction) -> bool:
        return choice.threads == 0 or _can_share(s, ref, choice.threads)

    near = _lie_side_by_side(block)
    threads = p.decide(
        ref.name, BlockReduction, lambda m: block_reduction_plans(results, terms, m, side_by_side=near), is_legal
    ).threads
    if threads:
        _share(s, ref, threads)
    return threads > 0 and s.program is not program


def _lie_side_by_side(block: Block) -> bool:
    """Tells whether a factor's last index moves along a reduced axis, and no other."""
    summed = {a.var for a in reduce_axes(block)}
    last = [set(free_vars(x.indices[-1])) for x in inputs_of(block) if x.indices]
    return any(moving and moving <= summed for moving in last)


def _can_share(s: Schedule, ref: BlockRef, threads: int) -> bool:
    """Tells whether partial results may be combined in any order: an index of the largest element, say, may not."""
    try:
        with proving():
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
