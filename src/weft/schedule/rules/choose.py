"""Which rule schedules what: the program's blocks are sorted into classes, and each class has its rule."""

from __future__ import annotations

from weft.loop.nodes import Program
from weft.schedule.rules.contraction import schedule_tiled
from weft.schedule.rules.facts import (
    block_of,
    ignores_or_follows,
    inputs_of,
    is_reduction,
    size_of,
    spatial_axes,
    uses_axis,
)
from weft.schedule.rules.injective import schedule_injective
from weft.schedule.rules.inline import inline_blocks
from weft.schedule.rules.rows import schedule_rows
from weft.schedule.rules.transform import schedule_transforms
from weft.schedule.schedule import Schedule
from weft.schedule.state import BlockRef
from weft.targets.target import Target


def schedule_program(program: Program, target: Target) -> Schedule:
    """Returns *program*, a group of operators straight from its formulas, scheduled for a CPU without search.

    Reductions whose last axis is contiguous in what they read (contractions, windows) are tiled in registers; others are computed
    row by row; what is left is element-wise and vectorised.
    """
    s = Schedule(program)
    inline_blocks(s)
    placed: set[BlockRef] = set()
    for ref in s.blocks():
        if is_reduction(block_of(s, ref)) and is_tileable(s, ref):
            placed |= schedule_tiled(s, ref, target)
    placed |= schedule_transforms(s, target)
    placed |= schedule_rows(s, target, placed)
    for ref in s.blocks():
        if ref not in placed:
            schedule_injective(s, ref, target)
    return s


def is_tileable(s: Schedule, ref: BlockRef) -> bool:
    """Tells whether a reduction can compute a vector of results at once: its last axis is not gathered from any input."""
    block = block_of(s, ref)
    axes = spatial_axes(block)
    return (
        bool(axes)
        and len({r.buffer for r in block.writes}) == 1
        and size_of(axes[-1].extent) > 1
        and any(uses_axis(x, axes[-1].var) for x in inputs_of(block))
        and all(ignores_or_follows(x, axes[-1].var) for x in inputs_of(block))
    )
