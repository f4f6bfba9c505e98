"""Panels of a right factor that are computed: each before it is multiplied by all rows, so that it stays in cache.

for p in panels:                                           for p in panels:
    panel[p] = weights taken apart, of all panels   ->         panel = weights taken apart
for p in panels:                                               for t in tiles of rows: a tile of products
    for t in tiles of rows: a tile of products
"""

from __future__ import annotations

from collections.abc import Sequence

from weft.cost import step_along
from weft.ir import Select, Var
from weft.loop import Block, Load, Store
from weft.schedule.cursors.state import BlockRef, LoopRef
from weft.schedule.cursors.tree import alloc_of
from weft.schedule.legality.access_region import at_loops
from weft.schedule.legality.placement import sole_reader, writers
from weft.schedule.rules.block_facts import block_of, contraction_of, is_reduction
from weft.schedule.rules.cpu.vectorize_axis import vectorize_last
from weft.schedule.schedule import Schedule


def compute_panel(
    s: Schedule, ref: BlockRef, outer: Sequence[LoopRef], lanes: int
) -> tuple[list[LoopRef], set[BlockRef]]:
    """Computes the right factor of *ref*, if an element-wise block makes it, in the last loop of *outer* from panel to panel.

    Returns the loops around that block, and the block; *outer* and no block where there is none, or only one panel.
    """
    producer, at = _producer(s, block_of(s, ref)), panel_loop(s, ref, outer)
    if producer is None or at is None:
        return list(outer), set()
    return place_panel(s, producer, outer, at, lanes)


def panel_loop(s: Schedule, ref: BlockRef, outer: Sequence[LoopRef]) -> int | None:
    """Returns the position in *outer* of the loop from one panel of the right factor of *ref* to the next; None for one panel."""
    block = block_of(s, ref)
    found = contraction_of(block)
    if found is None:
        return None
    indices = [at_loops(block, i) for i in found.right.indices]
    moving = [n for n, f in enumerate(outer) if step_along(found.right.buffer, indices, f.var)]
    return moving[-1] if moving else None


def place_panel(
    s: Schedule, maker: BlockRef, outer: Sequence[LoopRef], at: int, lanes: int
) -> tuple[list[LoopRef], set[BlockRef]]:
    """Puts the block that makes panels into the loop at a position of *outer*; returns the loops around it, and the block."""
    s.compute_at(maker, outer[at], align=lanes)
    vectorize_last(s, list(s.loops(maker))[at + 1 :], lanes)
    return list(outer[: at + 1]), {maker}


def _producer(s: Schedule, block: Block) -> BlockRef | None:
    """Returns the element-wise block that computes the right factor of a sum of products for it alone; None if none does.

    A padding moves elements, of which windows share some: it is none.
    """
    found = contraction_of(block)
    if found is None or not all(isinstance(i, Var) for i in found.right.indices):
        return None
    if alloc_of(s.function.body, found.right.buffer) is None:
        return None
    makers = writers(s.function, found.right.buffer)
    if len(makers) != 1 or is_reduction(makers[0]) or sole_reader(s.function, makers[0]) is not block:
        return None
    moves = isinstance(makers[0].body, Store) and isinstance(makers[0].body.value, Load | Select)
    return None if moves else BlockRef(makers[0].name)
