"""Padding and patches are computed by the threads that read them, once the blocks that do are placed: no kernel makes them.

    for i: P[i] = A[i - 1] if 1 <= i else 0.0
    for b, t in grid:                              ->      for b, t in grid:
        for r: c[0] += P[f(b, t, r)]                           for r: c[0] += A[f(b, t, r) - 1] if 1 <= f(b, t, r) else 0.0

The reader is the reduction, or the copy of a factor that a tile fetches into shared memory. A condition takes a thread less than
writing and reading an element of the device's memory.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

from weft.cost import Candidate, Inline, Planner, elements, inline_plans
from weft.ir import Const, Select, reads_memory, rounded_operand
from weft.loop import Block, Load, Store
from weft.schedule.cursors.state import BlockRef
from weft.schedule.cursors.tree import alloc_of, block_path, loops_on
from weft.schedule.legality.placement import readers
from weft.schedule.rules.block_facts import block_of, inputs_of, is_reduction
from weft.schedule.rules.cpu.inline import try_inline
from weft.schedule.schedule import Schedule
from weft.targets import Target


def inline_fetches(s: Schedule, p: Planner) -> None:
    """Inlines the blocks of *s* that only select elements by their index, and that a single block reads at a single place."""
    for ref in s.blocks():
        size = elements(block_of(s, ref).axes)
        if _may_be_fetched(s, ref) and p.decide(ref.name, Inline, partial(_plans, size)).inline:
            try_inline(s, ref)


def _plans(size: int, _: Target) -> Iterator[Candidate[Inline]]:
    return inline_plans(size)


def _may_be_fetched(s: Schedule, ref: BlockRef) -> bool:
    """Tells whether *ref* is not bound to a grid yet, only selects elements, and is read at a single place."""
    block, path = block_of(s, ref), block_path(s.function, ref)
    if not _chooses(block) or any(f.kind != "range" for f in loops_on(path)):
        return False
    if any(alloc_of(s.function.body, r.buffer) is None for r in block.writes):
        return False
    users = readers(s.function, block)
    return len(users) == 1 and sum(x.buffer is block.writes[0].buffer for x in inputs_of(users[0])) == 1


def _chooses(block: Block) -> bool:
    """Tells whether each element of *block* is an input element, as it is or rounded, or a constant, selected by a condition on
    indices only.
    """
    if is_reduction(block) or not isinstance(block.body, Store):
        return False
    values = [block.body.value]
    while values:
        value = values.pop()
        given = rounded_operand(value)
        if isinstance(value, Select):
            if reads_memory(value.cond):
                return False
            values += [value.then, value.other]
        elif given is not None:
            values.append(given)
        elif not isinstance(value, Load | Const):
            return False
    return not isinstance(block.body.value, Const)
