"""Asks ahead for what a loop reads of a factor too large for the nearest cache, where the machine does not do so itself.

The weights of a layer are read in order, panel by panel, from the third level of cache or from memory, and a panel again by each
tile of rows. Each step of the reduction asks for the lines some steps further on; past the end of a panel those are the first of
the next one. Lines that are near already cost little to ask for.

The first tile of a panel would still wait for memory, and memory for the others. So all tiles of a panel ask for the next one,
a part each, where two panels fit the second-level cache: memory is read as evenly as the work goes on. This is for panels whose
rows lie one after another. Pieces of the long rows of a matrix as it is, each in a page of its own, keep memory from what is
needed now. The loops that go through panels, such as those over blocks of channels and over phases, are made one: at the end of
an inner one the next panel would not be known.

Taps and blocks of channels read the image in another row or plane, for which each step of theirs asks one step ahead.

Some machines foresee streams, but not across pages, and a tile has so many multiply-adds for each of its vectors that the next
ones come too late into the core's sight. With few uses of each they are in sight, and asking would only take turns from loads.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import prod

from weft.loop.nodes import Load
from weft.schedule.region import at_loops
from weft.schedule.rules.facts import block_of, contraction_of, size_of
from weft.schedule.rules.footprint import bytes_of, bytes_touched, step_along
from weft.schedule.rules.tiles import LOADS_PER_CYCLE, NEAR_ROWS, shares_panels
from weft.schedule.schedule import Schedule
from weft.schedule.state import BlockRef, LoopRef
from weft.targets.target import Target


def join_panels(
    s: Schedule, ref: BlockRef, outer: Sequence[LoopRef], loop: LoopRef, width: int, target: Target
) -> list[LoopRef]:
    """Returns the loops *outer*, those around the tiles of a sum of products, with the innermost that go through panels in one.

    They are left as they are where `ask_ahead` would not ask for the next panel; *loop* and *width* are as there.
    """
    if not _is_stream(s, ref, loop, target):
        return list(outer)
    if _panel_loop(s, ref, s.loops(ref).index(outer[-1]) + 1, width, target) is None:
        return list(outer)
    moving = _moving(s, ref, outer)
    end = outer.index(moving[-1]) + 1 if moving else 0
    begin = end
    while begin > 0 and outer[begin - 1] in moving and s.extent(outer[begin - 1]) is not None:
        begin -= 1
    if end - begin < 2:
        return list(outer)
    return [*outer[:begin], s.fuse(outer[begin:end]), *outer[end:]]


def ask_ahead(
    s: Schedule, ref: BlockRef, loop: LoopRef, inside: int, width: int, target: Target, cut: Sequence[LoopRef] = ()
) -> None:
    """Lets a sum of products prefetch its right factor if that is a long stream.

    The loops around it from number *inside* on are those of a tile; *loop* is the innermost of its reduction, and each of its
    steps reads *width* elements side by side. Loops that will be *cut* to pieces go through panels one after another.
    """
    right = _right(s, ref)
    if right is None or not _is_stream(s, ref, loop, target):
        return
    ahead, buffer = target.read_ahead, right.buffer
    foreseen = _is_in_order(right, width, target) and _uses(s, ref, inside) < target.read_ahead_uses
    panels = _panel_loop(s, ref, inside, width, target)
    whole = [f for f in _moving(s, ref, s.loops(ref)[:inside]) if f not in cut]
    if panels is not None and whole:
        s.prefetch(whole[-1], buffer.name, 1)
        ahead //= 2  # a panel is nearer when its turn comes
    if not foreseen:
        s.prefetch(loop, buffer.name, max(1, ahead // (width * buffer.dtype.bytes)))


def ask_for_places(s: Schedule, ref: BlockRef, loop: LoopRef, inside: int, sums: int, target: Target) -> None:
    """Lets a convolution prefetch its image for the next step of the loop around *loop*, over taps or blocks of channels.

    Such a step goes on in another row or plane, which no machine foresees, where those of *loop* are through one line. It is
    asked for where what one panel is multiplied with does not stay in the second-level cache until the next panel's turn, and
    where the multiply-adds of a tile's *sums* leave the time to ask for as many lines as it has places. *inside* is as for
    `ask_ahead`.
    """
    found, loops = contraction_of(block_of(s, ref)), s.loops(ref)
    steps = [f for f in loops[inside : loops.index(loop)] if s.extent(f) != 1]
    if found is None or not target.read_ahead or not steps:
        return
    panels = _moving(s, ref, loops[:inside])
    image = _at_loops(s, ref, found.left)
    along, onward = (abs(step_along(image.buffer, image.indices, f.var)) for f in (loop, steps[-1]))
    if along != 1 or onward * image.buffer.dtype.bytes < target.cache_line:
        return
    walked = {f.var: s.extent(f) or 1 for f in loops if f not in panels}
    if bytes_touched(image.buffer, image.indices, walked) <= target.l2:
        return
    places = _uses(s, ref, inside)
    if (2 * places + sums // places) / LOADS_PER_CYCLE <= sums / max(1, target.fma_per_cycle):
        s.prefetch(steps[-1], image.buffer.name, 1)


def _uses(s: Schedule, ref: BlockRef, inside: int) -> int:
    """Returns how often a tile, the loops from number *inside* on, uses each element that it reads of the right factor."""
    loops = s.loops(ref)[inside:]
    moving = _moving(s, ref, loops)
    return prod([s.extent(f) or 1 for f in loops if f not in moving])


def _is_stream(s: Schedule, ref: BlockRef, loop: LoopRef, target: Target) -> bool:
    """Tells whether each step of *loop* reads the next row of a right factor that the nearest cache does not hold."""
    right = _right(s, ref)
    if right is None or not target.read_ahead or bytes_of(right.buffer) <= target.l1:
        return False
    return step_along(right.buffer, right.indices, loop.var) == size_of(right.buffer.shape[-1])


def _is_in_order(right: Load, width: int, target: Target) -> bool:
    """Tells whether pieces of *width* elements of rows follow each other so closely that they are one stream."""
    row = size_of(right.buffer.shape[-1])
    return row <= width or row * right.buffer.dtype.bytes <= NEAR_ROWS * target.cache_line


def _panel_loop(s: Schedule, ref: BlockRef, inside: int, width: int, target: Target) -> LoopRef | None:
    """Returns the loop each of whose iterations is a panel's tiles, if those ask for the next panel together."""
    right = _right(s, ref)
    if right is None or bytes_of(right.buffer) <= target.l2:
        return None
    around, within = s.loops(ref)[:inside], s.loops(ref)[inside:]
    moving = _moving(s, ref, around)
    if not moving or not _is_in_order(right, width, target):
        return None
    tiles = prod([s.extent(f) or 1 for f in around[around.index(moving[-1]) + 1 :]])
    panel = prod([s.extent(f) or 1 for f in _moving(s, ref, within)]) * right.buffer.dtype.bytes
    return moving[-1] if shares_panels(tiles, width, panel, target) else None


def _moving(s: Schedule, ref: BlockRef, loops: Sequence[LoopRef]) -> list[LoopRef]:
    """Returns those of *loops* along which the right factor is read elsewhere."""
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
