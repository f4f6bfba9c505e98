"""`compute_root`: a producer leaves the loops that it was placed in, and computes all of its result before them.

for i in range(0, 6):                   for i in range(0, 8):
    for ax in range(0, 3):                  A[i] = f(i)
        A[i + ax] = f(i + ax)  ->       for i in range(0, 6):
    B[i] = A[i] + A[i + 2]                  B[i] = A[i] + A[i + 2]
"""

from __future__ import annotations

from weft.loop import NOTHING, Alloc, Block, Function, Stmt, seq
from weft.schedule.cursors.loop_nest import nest_over, own_nest, top_level
from weft.schedule.cursors.primitive import primitive
from weft.schedule.cursors.state import BlockRef, Change, refuse
from weft.schedule.cursors.tree import Path, add_alloc, alloc_of, block_path, bounds_on, drop_alloc, replace, the_block
from weft.schedule.legality.bijection import is_bijective
from weft.schedule.legality.flow_dependence import check_structured, is_covered, uses_under
from weft.schedule.legality.output_dependence import check_output_dependences
from weft.schedule.legality.placement import check_complete, check_placeable, check_whole, written_buffers
from weft.schedule.legality.predicate_bounds import check_recomputable
from weft.schedule.legality.reaching_writes import check_reaching_writes


@primitive
def compute_root(fn: Function, block: BlockRef) -> tuple[Change, None]:
    """Moves *block* out of all loops, to just before the nest that it is in, where it computes its whole result.

    It undoes `compute_at` and `reverse_compute_at`. Legal if all inputs of the block are computed before that nest and, where it
    writes an output of the function, if it computes each element once, before it is read. The block gets new loops of its own.
    """
    path = block_path(fn, block)
    producer = the_block(path)
    _check(fn, path, producer)
    place = top_level(path)
    whole = nest_over(producer, {}, bounds_on(place[:-1], fn))
    check_whole(path, producer)
    rest = replace(own_nest(path)[len(place) - 1 :], NOTHING)
    moved = fn.with_body(_with_allocations(replace(place, seq(whole, rest)), producer, place))
    check_reaching_writes(fn, block.name, moved, block.name)
    check_output_dependences(fn, moved, block.name)
    return Change(moved), None


def _check(fn: Function, path: Path, producer: Block) -> None:
    check_structured(fn.body)
    _check_results(fn, path, producer)
    if own_nest(path) == top_level(path):
        refuse(f"{producer.name} is outside of all other loops already", producer, "there is nothing to move it out of")
    check_complete(fn, path)
    check_recomputable(fn, path)
    check_placeable(producer)


def _check_results(fn: Function, path: Path, producer: Block) -> None:
    """Refuses a block that leaves elements of an output unwritten, or one whose results are read before they are complete."""
    for b in written_buffers(producer):
        if alloc_of(fn.body, b) is not None:
            continue
        uses = uses_under((fn.body,))[b]
        written = [w for w in uses.writes if w.block is producer]
        read = [r for r in uses.reads if r.block is not producer]
        if not is_bijective(fn, path) or not all(is_covered(fn, written, r) for r in read):
            refuse(
                f"{b.name} is an output of the function",
                producer,
                "only an intermediate result, or one that is computed just once, can move",
            )


def _with_allocations(body: Stmt, producer: Block, place: Path) -> Stmt:
    """Moves the allocations of the buffers that *producer* writes out of the loops, where they were private to an iteration."""
    outside = {s.buffer for s in place if isinstance(s, Alloc)}
    for b in written_buffers(producer):
        if b not in outside and alloc_of(body, b) is not None:
            body = add_alloc(drop_alloc(body, b), b)
    return body
