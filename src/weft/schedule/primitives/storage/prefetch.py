"""`prefetch`: a loop prefetches memory some iterations before it reads it.

for i in range(0, 64):                  for i in range(0, 64, prefetch=(A, 2)):
    B[i] = A[i * 16]           ->           B[i] = A[i * 16]

and lowered, the address of A[(i + 2) * 16] is prefetched before A[i * 16] is read.
"""

from __future__ import annotations

from weft.loop import Buffer, For, Function, Prefetch, with_note
from weft.schedule.cursors.primitive import primitive
from weft.schedule.cursors.rebind import uses
from weft.schedule.cursors.state import Change, LoopRef, called, refuse
from weft.schedule.cursors.tree import blocks_in, loop_path, regions_of, replace, the_loop
from weft.schedule.legality.access_region import at_loops
from weft.schedule.legality.placement import read_buffers


@primitive
def prefetch(fn: Function, loop: LoopRef, buffer: str, distance: int = 1) -> tuple[Change, None]:
    """Prefetches in each iteration of *loop* the elements of *buffer* that the iteration *distance* later reads.

    Where an iteration reads a run of memory in inner loops, once or several times, the prefetches are spread over these loops
    and go to the second-level cache; else a prefetch stands beside the read.

    A hint, always legal for a buffer that is read in the loop at indices that depend on it. It is a note of the loop: a later
    `split` drops it.
    """
    path = loop_path(fn, loop)
    old = the_loop(path)
    if distance < 1:
        refuse(f"a distance of {distance} iterations is none", old, "ask at least one iteration before")
    notes = with_note(old.notes, Prefetch(_read(old, buffer), distance))
    new = For(old.var, old.begin, old.extent, old.kind, old.body, notes)
    return Change(fn.with_body(replace(path, new)), in_order=True), None


def _read(loop: For, name: str) -> Buffer:
    """Returns the one buffer called *name* that blocks in *loop* read at indices that depend on it."""
    known: dict[Buffer, bool] = {}
    for b in blocks_in(loop):
        for x in read_buffers(b):
            begins = [at_loops(b, r.begin) for region in regions_of(b.reads, x) for r in region.ranges]
            known[x] = known.get(x, False) or any(uses(e, loop.var) for e in begins)
    named = [b for b in known if b.name == name]
    if len(named) != 1:
        listed = ", ".join(b.name for b in known) or "nothing"
        refuse(f"the loop {called(loop.var)} does not read one buffer called {name}", loop, f"it reads {listed}")
    if not known[named[0]]:
        refuse(
            f"each iteration of {called(loop.var)} reads the same of {name}",
            loop,
            "choose a loop that the indices depend on",
        )
    return named[0]
