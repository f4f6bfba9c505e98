"""The order of loops around vectors that are gathered: those that stay in the cache lines of a vector are put inside the others.

    for o, tap, i:  y[o, tap, i, 0:16] = w[i, 16 * o + 0:16, tap]       ->      for o, i, tap: ...

The elements of a vector lie in lines of their own, of which each is then read once for all of its elements that are wanted.
"""

from __future__ import annotations

from collections.abc import Sequence

from weft.cost import size_of, step_along
from weft.ir import Var, linear_terms
from weft.loop import Block, Load
from weft.schedule.cursors.state import BlockRef, LoopRef
from weft.schedule.legality.access_region import at_loops
from weft.schedule.rules.block_facts import block_of, inputs_of, reads_along, uses_axis
from weft.schedule.schedule import Schedule


def put_line_loops_inside(s: Schedule, ref: BlockRef, loops: Sequence[LoopRef], lanes: int) -> list[LoopRef]:
    """Orders *loops*, around vectors of *lanes* elements along the last one, by how far the element moves that they gather.

    Returns *loops* as they are where nothing is gathered, or more than one element; where no other loop stays within the bytes of
    a vector, which is a line or half of one; or where the last loop is no whole vectors, so that lines would be written in parts.
    """
    block = block_of(s, ref)
    found = _gathered(block)
    if found is None or len(loops) < 3 or size_of(block.axes[-1].extent) % lanes:
        return list(loops)
    line = lanes * block.writes[0].buffer.dtype.bytes
    indices = [at_loops(block, i) for i in found.indices]
    if any(linear_terms(i, [f.var for f in loops]) is None for i in indices):
        return list(loops)  # places that are found by division move by no single step
    steps = {f: found.buffer.dtype.bytes * abs(step_along(found.buffer, indices, f.var)) for f in loops[:-1]}
    if not any(0 < n < line for n in steps.values()):
        return list(loops)
    order = [*sorted(loops[:-1], key=lambda f: -steps[f]), loops[-1]]
    s.reorder(order)
    return order


def _gathered(block: Block) -> Load | None:
    """Returns the element that a block reads, if it is one alone whose place moves along the last axis, but not by one."""
    found = set(inputs_of(block))
    if len(found) != 1 or not block.axes or not isinstance(block.bindings[-1], Var):
        return None
    (load,) = found
    last = block.axes[-1].var
    return load if uses_axis(load, last) and not reads_along(load, last) else None
