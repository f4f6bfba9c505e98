"""Schedules: checked rewrites of loop programs, one primitive a file."""

from weft.schedule.cursors.primitive import primitive
from weft.schedule.cursors.rebind import rebind
from weft.schedule.cursors.state import BlockRef, Change, LoopRef, refuse
from weft.schedule.cursors.tree import blocks_in, bounds_on, loop_path, replace, the_loop
from weft.schedule.legality.trust import trusting
from weft.schedule.rules.block_facts import block_of, reduce_axes, spatial_axes
from weft.schedule.rules.choose import apply_plan, carry_out, schedule_program
from weft.schedule.rules.cpu.contractions.tile_roles import Part, Roles, parts_of, roles_of
from weft.schedule.rules.cpu.inline import inline_blocks
from weft.schedule.rules.plans import plan_with, plans
from weft.schedule.schedule import Schedule
from weft.schedule.trace import Trace, replay

__all__ = [
    "BlockRef", "Change", "LoopRef", "Part", "Roles", "Schedule", "Trace", "apply_plan", "block_of", "blocks_in",
    "bounds_on", "carry_out", "inline_blocks", "loop_path", "parts_of", "plan_with", "plans", "primitive", "rebind",
    "reduce_axes", "refuse", "replace", "replay", "roles_of", "schedule_program", "spatial_axes", "the_loop",
    "trusting",
]
