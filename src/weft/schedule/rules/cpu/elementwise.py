"""The rule for element-wise work: the last loop in vectors, the outer ones in parallel."""

from __future__ import annotations

from weft.cost import Planner
from weft.schedule.cursors.state import BlockRef, LoopRef
from weft.schedule.cursors.tree import block_path, loops_on
from weft.schedule.rules.block_facts import block_of
from weft.schedule.rules.cpu.parallel import parallelize
from weft.schedule.rules.cpu.transpose import schedule_transpose
from weft.schedule.rules.cpu.vectorize_axis import vectorize_last
from weft.schedule.schedule import Schedule


def schedule_elementwise(s: Schedule, ref: BlockRef, p: Planner) -> None:
    """Vectorises the innermost loop around a block and runs the outer ones in parallel, if there is work enough."""
    loops = [f for f in s.loops(ref) if s.extent(f) != 1]
    if not loops or not _is_serial(s, ref) or schedule_transpose(s, ref, p):
        return
    dtype = block_of(s, ref).writes[0].buffer.dtype
    loops = _fuse_flat(s, ref, loops)
    outer = vectorize_last(s, loops, p.lanes(dtype.bits))
    parallelize(s, ref, outer, p)


def _is_serial(s: Schedule, ref: BlockRef) -> bool:
    return all(f.kind == "range" for f in loops_on(block_path(s.function, ref)))


def _fuse_flat(s: Schedule, ref: BlockRef, loops: list[LoopRef]) -> list[LoopRef]:
    """Fuses all loops of a block that accesses every buffer at its plain axes: one flat pass over memory."""
    block = block_of(s, ref)
    axes = [a.var for a in block.axes]
    shapes = [a.extent for a in block.axes]
    regions = [*block.reads, *block.writes]
    flat = all([r.begin for r in x.ranges] == axes and list(x.buffer.shape) == shapes for x in regions)
    return [s.fuse(list(s.loops(ref)))] if flat and len(loops) > 1 else loops
