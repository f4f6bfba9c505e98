"""Asks ahead for what a loop reads of a factor too large for the nearest cache, where the machine does not do so itself.

The weights of a layer are read in order, panel by panel, from the third level of cache or from memory, and a panel again by each
tile of rows. Each step of the reduction asks for the lines some steps further on; past the end of a panel those are the first of
the next one. Lines that are near already cost little to ask for.

The first tile of a panel would still wait for memory, and memory for the others. So all tiles of a panel ask for the next one,
a part each, where two panels fit the second-level cache: memory is read as evenly as the work goes on. This is for panels whose
rows lie one after another. Pieces of the long rows of a matrix as it is, each in a page of its own, keep memory from what is
needed now.
"""

from __future__ import annotations

from math import prod

from weft.schedule.region import at_loops
from weft.schedule.rules.facts import block_of, contraction_of, size_of
from weft.schedule.rules.footprint import bytes_of, step_along
from weft.schedule.rules.tiles import NEAR_ROWS, shares_panels
from weft.schedule.schedule import Schedule
from weft.schedule.state import BlockRef, LoopRef
from weft.targets.target import Target


def ask_ahead(s: Schedule, ref: BlockRef, loop: LoopRef, inside: int, width: int, target: Target) -> None:
    """Lets a sum of products prefetch its right factor if that is a long stream.

    The loops around it from number *inside* on are those of a tile; *loop* is the innermost of its reduction, and each of its
    steps reads *width* elements side by side.
    """
    found = contraction_of(block_of(s, ref))
    if found is None or not target.read_ahead:
        return
    block, right = block_of(s, ref), found.right.buffer
    indices = [at_loops(block, i) for i in found.right.indices]
    if bytes_of(right) <= target.l1 or step_along(right, indices, loop.var) != size_of(right.shape[-1]):
        return
    ahead = target.read_ahead
    loops = s.loops(ref)
    moving = [f for f in loops if step_along(right, indices, f.var)]
    outer = [n for n, f in enumerate(loops[:inside]) if f in moving]
    row = size_of(right.shape[-1])
    in_order = row <= width or row * right.dtype.bytes <= NEAR_ROWS * target.cache_line
    if outer and in_order and bytes_of(right) > target.l2:
        panel = prod([s.extent(f) or 1 for f in loops[inside:] if f in moving]) * right.dtype.bytes
        tiles = prod([s.extent(f) or 1 for f in loops[outer[-1] + 1 : inside]])
        if shares_panels(tiles, width, panel, target):
            s.prefetch(loops[outer[-1]], right.name, 1)
            ahead //= 2  # a panel is nearer when its turn comes
    s.prefetch(loop, right.name, max(1, ahead // (width * right.dtype.bytes)))
