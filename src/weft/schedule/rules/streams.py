"""Asks ahead for what a loop reads of a factor too large for the near caches, where the machine does not do so itself.

The weights of a layer are read in order, panel by panel, from the third level of cache or from memory, and a panel again by each
tile of rows. While these tiles read this panel, they ask for the next one, a part each. Where a panel is read only once, or two
do not fit the second-level cache, each step of the reduction asks for the lines some steps further on; past the end of a panel
those are the first of the next one.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import prod

from weft.loop.nodes import Load, LoopKind
from weft.schedule.region import at_loops
from weft.schedule.rules.facts import block_of, contraction_of, elements, reduce_axes, size_of
from weft.schedule.rules.footprint import Access, Level
from weft.schedule.schedule import Schedule
from weft.schedule.state import BlockRef, LoopRef
from weft.targets.target import Target

PANELS_SHARE = 0.75
"""The part of the second-level cache that two panels may fill."""


def ask_ahead(s: Schedule, ref: BlockRef, loop: LoopRef, outer: Sequence[LoopRef], target: Target) -> None:
    """Lets *loop*, the innermost reduction around a sum of products, prefetch the right factor if that is a long stream.

    *outer* are the loops around the tiles, the outermost first.
    """
    found = contraction_of(block_of(s, ref))
    if found is None or not target.read_ahead:
        return
    right = found.right.buffer
    size = right.dtype.bytes
    step = _step(s, ref, loop, found.right)
    if prod(map(size_of, right.shape)) * size <= target.l2 or step != size_of(right.shape[-1]):
        return
    depth = elements(reduce_axes(block_of(s, ref)))
    moving = [n for n, f in enumerate(outer) if _step(s, ref, f, found.right)]
    rows = [f for f in outer[moving[-1] + 1 :] if (s.extent(f) or 0) > 1] if moving else []
    follows = bool(moving) and _step(s, ref, outer[moving[-1]], found.right) == depth * step
    if rows and follows and 2 * depth * step * size <= PANELS_SHARE * target.l2:
        s.prefetch(loop, right.name, depth, share=max(rows, key=lambda f: s.extent(f) or 0))
    else:
        s.prefetch(loop, right.name, max(1, target.read_ahead // (step * size)))


def _step(s: Schedule, ref: BlockRef, loop: LoopRef, load: Load) -> int:
    """Returns how many elements further *load* reads in the next iteration of *loop*."""
    block = block_of(s, ref)
    access = Access(load.buffer, tuple([at_loops(block, i) for i in load.indices]), False)
    return access.stride(Level(loop.var, 2, 1, LoopKind.SERIAL))
