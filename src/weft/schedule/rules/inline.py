"""Inlining before anything else: formulas that are read about as often as they are written become part of their readers."""

from __future__ import annotations

from weft.ir.expr import Const
from weft.loop.nodes import Block, Load, Store
from weft.schedule.placing import readers
from weft.schedule.rules.facts import block_of, elements, inputs_of, is_reduction
from weft.schedule.schedule import Schedule
from weft.schedule.state import BlockRef
from weft.schedule.tree import alloc_of
from weft.support.errors import ScheduleError


def inline_blocks(s: Schedule) -> None:
    """Inlines every block that costs nothing to compute where it is read."""
    for ref in s.blocks():
        block = block_of(s, ref)
        if _is_candidate(s, block) and _pays(block, readers(s.function, block)):
            _try_inline(s, ref)


def _is_candidate(s: Schedule, block: Block) -> bool:
    intermediate = all(alloc_of(s.function.body, r.buffer) is not None for r in block.writes)
    return intermediate and not is_reduction(block) and isinstance(block.body, Store)


def _pays(block: Block, users: list[Block]) -> bool:
    """Tells whether computing *block* in its users repeats no work worth keeping.

    A mere rearrangement is read as well through it; a computed value has one user, which reads each element once. What pads a
    reduction's input stays apart, so that the reduction's inner loop has no conditions.
    """
    value = block.body.value if isinstance(block.body, Store) else None
    if value is None or not users:
        return False
    if isinstance(value, Const | Load):
        return True
    if any(is_reduction(u) for u in users):
        return False
    made = block.writes[0].buffer
    reads_once = sum(x.buffer is made for x in inputs_of(users[0])) == 1
    return len(users) == 1 and reads_once and elements(users[0].axes) <= elements(block.axes)


def _try_inline(s: Schedule, ref: BlockRef) -> None:
    try:
        s.compute_inline(ref)
    except ScheduleError:  # not of the form that can be inlined; it stays a block of its own
        return
