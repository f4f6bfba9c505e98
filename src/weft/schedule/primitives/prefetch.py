"""`prefetch`: a loop asks for memory some iterations before it reads it.

for i in range(0, 64):                  for i in range(0, 64, prefetch_A=2):
    B[i] = A[i * 16]           ->           B[i] = A[i * 16]

and lowered, the address of A[(i + 2) * 16] is given to the machine before A[i * 16] is read.

The iterations of a loop around that read the same may *share* the work, each asking for some of the cache lines: that spreads
what one pass over a panel reads of the next panel over all passes over this one.
"""

from __future__ import annotations

from weft.ir.expr import Const
from weft.loop.nodes import Buffer, For, Function
from weft.schedule.placing import read_buffers
from weft.schedule.primitive import primitive
from weft.schedule.rebind import uses
from weft.schedule.region import at_loops
from weft.schedule.state import Change, LoopRef, called, refuse
from weft.schedule.tree import blocks_in, loop_path, loops_on, regions_of, replace, the_loop


@primitive
def prefetch(
    fn: Function, loop: LoopRef, buffer: str, distance: int = 1, share: LoopRef | None = None
) -> tuple[Change, None]:
    """Asks in each iteration of *loop* for what the iteration *distance* later reads of *buffer*.

    *share* is a loop of constant extent around that, in whose iterations the same is read: each asks for a part.

    A hint, always legal for a buffer that is read in the loop at places that depend on it. It lasts as long as the loop: a later
    `split` forgets it.
    """
    path = loop_path(fn, loop)
    old = the_loop(path)
    if distance < 1:
        refuse(f"a distance of {distance} iterations is none", old, "ask at least one iteration before")
    name = _read(old, buffer).name
    if share is None:
        return Change(fn.with_body(replace(path, _noted(old, f"prefetch_{name}", distance)))), None
    extent = _extent(next((f for f in loops_on(path) if f.var is share.var), None), old, name)
    fn = fn.with_body(replace(path, _noted(old, f"prefetch_{name}", distance)))
    around = loop_path(fn, share)
    return Change(fn.with_body(replace(around, _noted(the_loop(around), f"share_prefetch_{name}", extent)))), None


def _noted(loop: For, key: str, value: int) -> For:
    kept = tuple([(k, v) for k, v in loop.annotations if k != key])
    return For(loop.var, loop.begin, loop.extent, loop.kind, loop.body, (*kept, (key, value)))


def _extent(around: For | None, loop: For, name: str) -> int:
    """Returns in how many iterations of the loop *around* the same of the buffer called *name* is read."""
    if around is None:
        refuse(f"the loop to share among is not around {called(loop.var)}", loop, "share among an outer loop")
    if not isinstance(around.extent, Const):
        refuse(f"{called(around.var)} has no constant extent", around, "share among a loop of known extent")
    if _moves(around, name):
        refuse(f"iterations of {called(around.var)} do not read the same of {name}", around, "share among another loop")
    return int(around.extent.value)


def _read(loop: For, name: str) -> Buffer:
    """Returns the one buffer called *name* that blocks in *loop* read at places that move with it."""
    known = _buffers(loop)
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


def _buffers(loop: For) -> dict[Buffer, bool]:
    """Returns the buffers that blocks in *loop* read, each with whether its place moves with the loop."""
    known: dict[Buffer, bool] = {}
    for b in blocks_in(loop):
        for x in read_buffers(b):
            begins = [at_loops(b, r.begin) for region in regions_of(b.reads, x) for r in region.ranges]
            known[x] = known.get(x, False) or any(uses(e, loop.var) for e in begins)
    return known


def _moves(loop: For, name: str) -> bool:
    return any(moves for b, moves in _buffers(loop).items() if b.name == name)
