"""Which rule schedules what: the program's blocks are sorted into classes, and each class has its rule."""

from __future__ import annotations

from weft.loop.nodes import Program
from weft.schedule.rules.contraction import schedule_tiled
from weft.schedule.rules.depth import is_deep, schedule_deep
from weft.schedule.rules.facts import block_of, is_reduction, is_tileable
from weft.schedule.rules.injective import schedule_injective
from weft.schedule.rules.inline import inline_blocks
from weft.schedule.rules.long_rows import reads_long_rows, schedule_long_rows
from weft.schedule.rules.moving import is_strided_along, moving_axes
from weft.schedule.rules.patches import schedule_patches
from weft.schedule.rules.rows import is_one_pass, schedule_rows
from weft.schedule.rules.scan import schedule_scans
from weft.schedule.rules.transform import schedule_transforms
from weft.schedule.rules.window import schedule_window
from weft.schedule.schedule import Schedule
from weft.schedule.state import BlockRef
from weft.targets.target import Target


def schedule_program(program: Program, target: Target) -> Schedule:
    """Returns *program*, a group of operators straight from its formulas, scheduled for a CPU without search.

    Reductions whose last axis is contiguous in what they read (contractions, windows) are tiled in registers; others are computed
    row by row; what is left is element-wise and vectorised. The steps of a recurrence are scheduled apart, in vectors.
    """
    s = Schedule(program)
    inline_blocks(s, target)
    placed = schedule_scans(s, target) | schedule_patches(s, target)
    one_pass = not placed and is_one_pass(s, target)
    for ref in s.blocks():
        block = block_of(s, ref)
        if ref in placed or one_pass or not is_reduction(block):
            continue
        if is_tileable(s, ref):
            placed |= _tile(s, ref, target)
        elif is_strided_along(block):
            placed |= schedule_window(s, ref, target)
    placed |= schedule_transforms(s, target, placed)
    placed |= schedule_rows(s, target, placed)
    for ref in s.blocks():
        if ref not in placed:
            schedule_injective(s, ref, target)
    return s


def _tile(s: Schedule, ref: BlockRef, target: Target) -> set[BlockRef]:
    """Schedules a reduction that can be tiled by the rule for its kind."""
    block = block_of(s, ref)
    if moving_axes(block):
        return schedule_window(s, ref, target)
    if reads_long_rows(block, target):
        return schedule_long_rows(s, ref, target)
    return schedule_deep(s, ref, target) if is_deep(block, target) else schedule_tiled(s, ref, target)
