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
    block = block_of(s, ref)
    producer, found = _producer(s, block), contraction_of(block)
    if producer is None or found is None:
        return list(outer), set()
    indices = [at_loops(block, i) for i in found.right.indices]
    moving = [n for n, f in enumerate(outer) if step_along(found.right.buffer, indices, f.var)]
    if not moving:
        return list(outer), set()
    inside = moving[-1] + 1
    s.compute_at(producer, outer[moving[-1]])
    vectorize_last(s, list(s.loops(producer))[inside:], lanes)
    return list(outer[:inside]), {producer}


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
