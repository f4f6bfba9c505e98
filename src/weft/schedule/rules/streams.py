"""Asks ahead for what a loop reads of a factor too large for the nearest cache, where the machine does not do so itself.

The weights of a layer are read in order, panel by panel, from the third level of cache or from memory, and a panel again by each
tile of rows. Each step of the reduction asks for the lines some steps further on; past the end of a panel those are the first of
the next one. Lines that are near already cost little to ask for.
"""

from __future__ import annotations

from weft.schedule.region import at_loops
from weft.schedule.rules.facts import block_of, contraction_of, size_of
from weft.schedule.rules.footprint import bytes_of, step_along
from weft.schedule.schedule import Schedule
from weft.schedule.state import BlockRef, LoopRef
from weft.targets.target import Target


def ask_ahead(s: Schedule, ref: BlockRef, loop: LoopRef, width: int, target: Target) -> None:
    """Lets *loop*, the innermost reduction around a sum of products, prefetch the right factor if that is a long stream.

    Each of its steps reads *width* elements side by side.
    """
    found = contraction_of(block_of(s, ref))
    if found is None or not target.read_ahead:
        return
    block, right = block_of(s, ref), found.right.buffer
    step = step_along(right, [at_loops(block, i) for i in found.right.indices], loop.var)
    if bytes_of(right) > target.l1 and step == size_of(right.shape[-1]):
        s.prefetch(loop, right.name, max(1, target.read_ahead // (width * right.dtype.bytes)))
