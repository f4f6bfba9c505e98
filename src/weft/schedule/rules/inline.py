"""Inlining before anything else: formulas that are read about as often as they are written become part of their readers."""

from __future__ import annotations

from math import prod

from weft.ir.expr import Const, Select
from weft.ir.rewrite import free_vars
from weft.loop.nodes import Block, Buffer, Load, Store
from weft.loop.visit import reads_memory
from weft.schedule.placing import readers
from weft.schedule.rules.facts import block_of, elements, inputs_of, is_reduction, reads_along, size_of
from weft.schedule.schedule import Schedule
from weft.schedule.state import BlockRef
from weft.schedule.tree import alloc_of
from weft.support.errors import ScheduleError
from weft.targets.target import Target

SET_PERIOD = 4096
"""Bytes after which lines fall into the same set of a first-level cache again: 64 sets of 64 bytes, on all current CPUs."""


def inline_blocks(s: Schedule, target: Target) -> None:
    """Inlines every block that costs nothing to compute where it is read."""
    for ref in s.blocks():
        block = block_of(s, ref)
        if _is_candidate(s, block) and _pays(block, readers(s.function, block), target):
            _try_inline(s, ref)


def _is_candidate(s: Schedule, block: Block) -> bool:
    intermediate = all(alloc_of(s.function.body, r.buffer) is not None for r in block.writes)
    return intermediate and not is_reduction(block) and isinstance(block.body, Store)


def _pays(block: Block, users: list[Block], target: Target) -> bool:
    """Tells whether computing *block* in its users repeats no work worth keeping.

    A mere rearrangement is read as well through it, and so is what gathers elements where they are read at one place: for each
    place the indices are read again. A computed value has one user, which reads each element once. What pads a reduction's input
    stays apart, so that the reduction's inner loop has no conditions.
    """
    value = block.body.value if isinstance(block.body, Store) else None
    if value is None or not users:
        return False
    reads_once = all(_reads_once(u, block.writes[0].buffer) for u in users)
    if isinstance(value, Const):
        return True
    if isinstance(value, Load) and (reads_once or not any(map(reads_memory, value.indices))):
        return not (any(map(_pads, users)) and _is_better_alone(block, value, target))
    if any(is_reduction(u) for u in users):
        return False
    return len(users) == 1 and reads_once and elements(users[0].axes) <= elements(block.axes)


def _reads_once(user: Block, made: Buffer) -> bool:
    """Tells whether *user* reads *made* at one place only, however often it uses that element."""
    return sum(x.buffer is made for x in inputs_of(user)) == 1


def _is_better_alone(block: Block, load: Load, target: Target) -> bool:
    """Tells whether a rearrangement makes rows of columns, and a pass of its own over memory costs less than that.

    By itself it goes by square tiles of vectors, which use up the lines that they read. It pays where its result is still in the
    second-level cache afterwards, or where the columns lie a multiple of `SET_PERIOD` apart: read in the order of the result,
    each line would be driven out before its next element is wanted.
    """
    last, bytes_of = block.axes[-1] if block.axes else None, load.buffer.dtype.bytes
    if last is None or size_of(last.extent) < target.lanes(8 * bytes_of) or reads_along(load, last.var):
        return False
    moving = [d for d, i in enumerate(load.indices) if last.var in free_vars(i)]
    apart = [prod(map(size_of, load.buffer.shape[d + 1 :])) * bytes_of for d in moving]
    return elements(block.axes) * bytes_of <= target.l2 / 2 or any(n % SET_PERIOD == 0 for n in apart)


def _pads(block: Block) -> bool:
    """Tells whether *block* copies what is inside of some bounds."""
    return isinstance(block.body, Store) and isinstance(block.body.value, Select)


def _try_inline(s: Schedule, ref: BlockRef) -> None:
    try:
        s.compute_inline(ref)
    except ScheduleError:  # not of the form that can be inlined; it stays a block of its own
        return
