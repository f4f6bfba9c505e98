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
from weft.loop import Load, Store
from weft.schedule.cursors.state import BlockRef, LoopRef
from weft.schedule.cursors.tree import alloc_of
from weft.schedule.legality.access_region import at_loops
from weft.schedule.legality.placement import sole_reader, writers
from weft.schedule.rules.block_facts import block_of, contraction_of, is_reduction
from weft.schedule.rules.cpu.vectorize_axis import vectorize_last
from weft.schedule.schedule import Schedule


def panel_producer(s: Schedule, ref: BlockRef) -> BlockRef | None:
    """Returns the element-wise block that computes the right factor of a sum of products for it alone; None if none does.

    A padding moves elements, of which windows share some: it is none.
    """
    block = block_of(s, ref)
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


def place_panel(s: Schedule, producer: BlockRef, ref: BlockRef, outer: Sequence[LoopRef], lanes: int) -> list[LoopRef]:
    """Computes the right factor of *ref* in the last of the loops *outer* that go from panel to panel; returns those around it.

    Where there is one panel, and so no such loop, the producer stays as it is.
    """
    block = block_of(s, ref)
    found = contraction_of(block)
    assert found is not None  # panel_producer said so
    right = Load(found.right.buffer, tuple([at_loops(block, i) for i in found.right.indices]))
    moving = [n for n, f in enumerate(outer) if step_along(right.buffer, right.indices, f.var)]
    if not moving:
        return []
    s.compute_at(producer, outer[moving[-1]])
    own = list(s.loops(producer))[moving[-1] + 1 :]
    vectorize_last(s, own, lanes)
    return list(outer[: moving[-1] + 1])
