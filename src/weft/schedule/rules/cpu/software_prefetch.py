"""Software prefetches of a factor too large for the nearest cache, where the hardware prefetchers do not fetch it.

The weights of a layer are read in order, panel by panel, from the third level of cache or from memory, and a panel again by each
tile of rows. Each step of the reduction prefetches the lines some steps further on; past the end of a panel those are the first
of the next one. A prefetch of a line that is in the cache already costs little.

The first tile of a panel would still wait for memory, which then idles during the others. So all tiles of a panel prefetch the
next one, a part each, where two panels fit the second-level cache: memory is read at an even rate. This is for packed panels,
whose rows lie one after another. In an unpacked matrix each piece of a long row lies in a page of its own, and its prefetches
delay the loads needed now. The loops over panels, such as those over blocks of channels and over phases, are fused: at the end
of an inner one the next panel would not be known.

Taps and blocks of channels read the image in another row or plane, which each step of their loops prefetches one step ahead.

Some machines prefetch streams in hardware, but not across pages, and a tile has so many multiply-adds for each of its vectors
that the next loads enter the out-of-order window too late. With few uses of each vector they enter in time, and software
prefetches would only take load slots.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from math import prod

from weft.cost import (
    Candidate,
    FusePanels,
    ImageProblem,
    Planner,
    Prefetch,
    PrefetchSteps,
    StreamProblem,
    bytes_of,
    bytes_touched,
    fuse_panel_plans,
    prefetch_plans,
    prefetch_step_plans,
    size_of,
    step_along,
)
from weft.loop import Load
from weft.schedule.cursors.state import BlockRef, LoopRef
from weft.schedule.legality.access_region import at_loops
from weft.schedule.rules.block_facts import block_of, contraction_of
from weft.schedule.schedule import Schedule
from weft.targets import Target


def fuse_panel_loops(
    s: Schedule, ref: BlockRef, outer: Sequence[LoopRef], loop: LoopRef, width: int, p: Planner
) -> list[LoopRef]:
    """Returns the loops *outer* around the tiles of a sum of products, with the innermost ones over panels fused.

    A single loop over panels stays as it is; *loop* and *width* are as for `prefetch_streams`.
    """
    problem = _stream(s, ref, loop, s.loops(ref).index(outer[-1]) + 1, width)
    moving = _moving(s, ref, outer)
    end = outer.index(moving[-1]) + 1 if moving else 0
    begin = end
    while begin > 0 and outer[begin - 1] in moving and s.extent(outer[begin - 1]) is not None:
        begin -= 1
    if problem is None or end - begin < 2:
        return list(outer)
    if not p.decide(ref.name, FusePanels, lambda m: fuse_panel_plans(problem, m)).fuse:
        return list(outer)
    return [*outer[:begin], s.fuse(outer[begin:end]), *outer[end:]]


def prefetch_streams(
    s: Schedule, ref: BlockRef, loop: LoopRef, inside: int, width: int, p: Planner, cut: Sequence[LoopRef] = ()
) -> None:
    """Lets a sum of products prefetch its B operand if that is a long stream.

    The loops around it from number *inside* on are those of a tile; *loop* is the innermost of its reduction, and each of its
    steps reads *width* elements side by side. Loops that will be partitioned (*cut*) run over panels one after another.
    """
    right, problem = _right(s, ref), _stream(s, ref, loop, inside, width, cut)
    if right is None or problem is None:
        return
    chosen, name = p.decide(ref.name, Prefetch, lambda m: prefetch_plans(problem, m)), right.buffer.name
    if chosen.panels:
        s.prefetch([f for f in _moving(s, ref, s.loops(ref)[:inside]) if f not in cut][-1], name, 1)
    if chosen.distance:
        s.prefetch(loop, name, chosen.distance)


def prefetch_window_steps(s: Schedule, ref: BlockRef, loop: LoopRef, inside: int, sums: int, p: Planner) -> None:
    """Lets a convolution prefetch its image for the next step of the loop around *loop*, over taps or blocks of channels.

    Such a step moves to another row or plane, which no hardware prefetcher predicts, when *loop* has read one line. A tile has
    *sums* vectors of sums; *inside* is as for `prefetch_streams`.
    """
    found, loops = contraction_of(block_of(s, ref)), s.loops(ref)
    steps = [f for f in loops[inside : loops.index(loop)] if s.extent(f) != 1]
    if found is None or not steps:
        return
    image = _at_loops(s, ref, found.left)
    along, onward = (abs(step_along(image.buffer, image.indices, f.var)) for f in (loop, steps[-1]))
    if along != 1:
        return
    panels = _moving(s, ref, loops[:inside])
    walked = {f.var: s.extent(f) or 1 for f in loops if f not in panels}

    def plans(m: Target) -> Iterable[Candidate[PrefetchSteps]]:
        touched = bytes_touched(image.buffer, image.indices, walked, m.caches.line)
        problem = ImageProblem(touched, onward * image.buffer.dtype.bytes, _uses(s, ref, inside), sums)
        return prefetch_step_plans(problem, m)

    if p.decide(ref.name, PrefetchSteps, plans).prefetch:
        s.prefetch(steps[-1], image.buffer.name, 1)


def _uses(s: Schedule, ref: BlockRef, inside: int) -> int:
    """Returns how often a tile, the loops from number *inside* on, uses each element that it reads of the right factor."""
    loops = s.loops(ref)[inside:]
    moving = _moving(s, ref, loops)
    return prod([s.extent(f) or 1 for f in loops if f not in moving])


def _stream(
    s: Schedule, ref: BlockRef, loop: LoopRef, inside: int, width: int, cut: Sequence[LoopRef] = ()
) -> StreamProblem | None:
    """Returns how the B operand of a sum of products is read, if each step of *loop* reads its next row."""
    found = contraction_of(block_of(s, ref))
    if found is None:
        return None
    right, group = _at_loops(s, ref, found.right), 1 if found.group is None else size_of(found.group.extent)
    row = prod([size_of(n) for n in right.buffer.shape[-1 if found.group is None else -2 :]])
    if step_along(right.buffer, right.indices, loop.var) != row:
        return None
    around, within = s.loops(ref)[:inside], s.loops(ref)[inside:]
    moving = _moving(s, ref, around)
    tiles = prod([s.extent(f) or 1 for f in around[around.index(moving[-1]) + 1 :]]) if moving else 1
    panel = prod([s.extent(f) or 1 for f in _moving(s, ref, within)]) * right.buffer.dtype.bytes
    return StreamProblem(
        nbytes=bytes_of(right.buffer),
        row=row,
        element_bytes=right.buffer.dtype.bytes,
        width=width * group,
        uses=_uses(s, ref, inside),
        has_panels=any(f not in cut for f in moving),
        tiles=tiles,
        depth=s.extent(loop),
        panel=panel,
    )


def _moving(s: Schedule, ref: BlockRef, loops: Sequence[LoopRef]) -> list[LoopRef]:
    """Returns those of *loops* that the indices of the right factor depend on."""
    right = _right(s, ref)
    return [] if right is None else [f for f in loops if step_along(right.buffer, right.indices, f.var)]


def _right(s: Schedule, ref: BlockRef) -> Load | None:
    """Returns the right factor of a sum of products, indexed by the loops around it."""
    found = contraction_of(block_of(s, ref))
    return None if found is None else _at_loops(s, ref, found.right)


def _at_loops(s: Schedule, ref: BlockRef, load: Load) -> Load:
    """Returns *load* of a block with indices in terms of the loops around it."""
    block = block_of(s, ref)
    return Load(load.buffer, tuple([at_loops(block, i) for i in load.indices]))
