"""`cross_thread_reduce`: each thread of a block computes a partial result, and the threads then combine these.

    for k0 in range(0, 4):                for k1 in bound(0, 32, thread="threadIdx.x"):
        for k1 in range(0, 32):               for k0 in range(0, 4):
            C[0] += A[k0, k1]      ->             C_rf[k1] += A[k0, k1]
                                          for k1 in range(0, 32):               # cross_thread="threadIdx.x"
                                              C[0] += C_rf[k1]

Lowering turns the last loop into a tree reduction: threads exchange values by shuffles or shared memory, as the target can.
After Harris, "Optimizing parallel reduction in CUDA" (2007).
"""

from __future__ import annotations

from weft.loop import Block, CrossThread, For, Function, find_note, with_note
from weft.schedule.cursors.primitive import primitive
from weft.schedule.cursors.state import BlockRef, Change, LoopRef, refuse
from weft.schedule.cursors.tree import Path, block_path, loops_on, replace, the_block
from weft.schedule.legality.placement import reduce_loops
from weft.schedule.primitives.loops.bind import bind
from weft.schedule.primitives.loops.reorder import reorder
from weft.schedule.primitives.reductions.rfactor import rfactor
from weft.schedule.primitives.storage.set_scope import set_scope


@primitive
def cross_thread_reduce(
    fn: Function, block: BlockRef, loop: LoopRef, thread: str = "threadIdx.x"
) -> tuple[Change, BlockRef]:
    """Runs *loop*, one that *block* reduces over, as the threads of the axis *thread*; returns the block of partial results.

    Sums are reassociated. Legal where `rfactor` is, for a loop of constant extent; *block* itself then combines the threads'
    partial results, and can be placed with its consumers.
    """
    path = block_path(fn, block)
    if not thread.startswith("threadIdx"):
        refuse(f"{thread} is no axis of the threads of one block", the_block(path), "use threadIdx.x, .y or .z")
    if find_note(the_block(path).notes, CrossThread) is not None:
        refuse(
            f"{block.name} combines what threads have already", the_block(path), "split the loop before it is reduced"
        )
    around = len(loops_on(path)) - len(_from_first(path))
    change, part = rfactor(fn, block, loop)
    rest = [LoopRef(f.var) for f in loops_on(block_path(change.function, part))[around:] if f.var is not loop.var]
    fn = reorder(change.function, [loop, *rest])[0].function if rest else change.function
    fn = bind(fn, loop, thread)[0].function
    fn = set_scope(fn, part, "local")[0].function
    path = block_path(fn, block)
    last = the_block(path)
    noted = Block(
        last.name,
        last.axes,
        last.bindings,
        last.predicate,
        last.reads,
        last.writes,
        last.init,
        last.body,
        with_note(last.notes, CrossThread(thread)),
    )
    return Change(fn.with_body(replace(path, noted))), part


def _from_first(path: Path) -> list[For]:
    """Returns the loops from the first one that the block reduces over."""
    loops, reduced = loops_on(path), reduce_loops(path)
    return loops[next((n for n, f in enumerate(loops) if f in reduced), len(loops)) :]
