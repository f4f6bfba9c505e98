"""The rule for dot products: sums of narrow elements' products, of which one instruction adds a group of neighbours to each lane.

    for k in range(0, K/4):                                        for k in range(0, K/4):
        for t in range(0, 4):                                          for i in unrolled(0, rows):
            C[i, j] += i32(A[i, 4*k + t]) * i32(B[k, j, t])   ->           C[i, ramp] = dot(C[i, ramp], A[i, 4*k : 4*k + 4], B[k])

The tiles are those of other contractions, a group of terms taking the place of one; `tensorize` proves that each vector of a
tile is what the instruction computes.
"""

from __future__ import annotations

from weft.cost import DotInstruction, Planner, dot_plans, size_of
from weft.loop import Block
from weft.schedule.cursors.state import BlockRef
from weft.schedule.rules.block_facts import contraction_of, spatial_axes
from weft.schedule.rules.cpu.contractions.contraction import tile_nest
from weft.schedule.rules.cpu.epilogue import epilogue_block
from weft.schedule.schedule import Schedule


def dot_instruction(ref: BlockRef, block: Block, p: Planner) -> str:
    """Returns the name of the instruction to compute *block* by; empty where that is no dot product, or no target has one."""
    found = contraction_of(block)
    if found is None or found.group is None:
        return ""
    kinds = found.left.buffer.dtype, found.right.buffer.dtype, block.writes[0].buffer.dtype
    panel, group = found.right.buffer.shape[-2], size_of(found.group.extent)
    columns = min(size_of(spatial_axes(block)[-1].extent), size_of(panel))  # of several panels, a vector is in one
    return p.decide(ref.name, DotInstruction, lambda m: dot_plans(kinds, columns, group, m)).name


def schedule_dot(s: Schedule, ref: BlockRef, p: Planner, instruction: str) -> set[BlockRef]:
    """Schedules a dot product with its epilogue block by *instruction*; returns the blocks that are now placed."""
    finish, loops = epilogue_block(s, ref)
    return tile_nest(s, ref, finish, loops, p, instruction=instruction)
