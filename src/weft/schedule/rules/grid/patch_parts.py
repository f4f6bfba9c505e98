"""The parts of patches in the shared memory of fragment tiles: fetched place by place, stored as rows of terms.

    patches_shared[p, k] = patches[k, p]      for k // 4, threads of p, vectors of 4 terms

Neighbouring threads fetch neighbouring places, which are neighbours in the image; a thread fetches the terms of one place, whose
condition is the same where they are channels of one tap, and stores them as a vector.
"""

from __future__ import annotations

from weft.ir import Select, rounded_operand
from weft.loop import Buffer, Load, Store
from weft.schedule.cursors.state import BlockRef, LoopRef
from weft.schedule.legality.placement import writers
from weft.schedule.rules.block_facts import block_of, inputs_of
from weft.schedule.schedule import Schedule
from weft.support.errors import ScheduleError


def is_formula(s: Schedule, copy: BlockRef) -> bool:
    """Tells whether a copy is of elements that are selected by conditions, or rounded, as they are fetched."""
    return selects(s, inputs_of(block_of(s, copy))[0].buffer)


def selects(s: Schedule, source: Buffer) -> bool:
    """Tells whether the elements of *source* are selected by conditions, or rounded, where it is made."""
    return any(
        isinstance(b.body, Store)
        and (isinstance(b.body.value, Select) or isinstance(rounded_operand(b.body.value), Load))
        for b in writers(s.function, source)
    )


def by_places(s: Schedule, copy: BlockRef, loops: list[LoopRef], lanes: int) -> list[LoopRef]:
    """Returns the loops over vectors of *lanes* elements of a copy of patches, terms outermost, then that over the elements."""
    if len(loops) != 2:
        raise ScheduleError(f"{copy.name} has no loops over terms and places")
    high, low = s.split(loops[0], [None, lanes])
    s.reorder([high, loops[1], low])
    return [high, loops[1], low]
