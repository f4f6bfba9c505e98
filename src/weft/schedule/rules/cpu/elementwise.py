"""The rule for element-wise work: the last loop in vectors, the outer ones in parallel."""

from __future__ import annotations

from collections.abc import Sequence

from weft.cost import Planner, size_of
from weft.ir import FloorMod, Var
from weft.loop import Block, Store
from weft.schedule.cursors.state import BlockRef, LoopRef
from weft.schedule.cursors.tree import block_path, loops_on
from weft.schedule.rules.block_facts import block_of, computed_with, inputs_of, split_index
from weft.schedule.rules.cpu.line_order import put_line_loops_inside
from weft.schedule.rules.cpu.parallel import parallelize
from weft.schedule.rules.cpu.transpose import schedule_transpose
from weft.schedule.rules.cpu.vectorize_axis import vectorize_map
from weft.schedule.schedule import Schedule
from weft.support.dtypes import f32


def schedule_elementwise(s: Schedule, ref: BlockRef, p: Planner) -> None:
    """Vectorises the innermost loop around a block and runs the outer ones in parallel, if there is work enough."""
    loops = [f for f in s.loops(ref) if s.extent(f) != 1]
    if not loops or not _is_serial(s, ref) or schedule_transpose(s, ref, p):
        return
    lanes = p.lanes(block_of(s, ref).writes[0].buffer.dtype.bits)
    loops = put_line_loops_inside(s, ref, _split_by_period(s, ref, _fuse_flat(s, ref, loops, lanes), lanes), lanes)
    shortest = min(
        _fewest_lanes(s, ref, p) // 2 + 1, p.lanes(f32.bits)
    )  # half a vector of narrow elements is one of floats
    outer = vectorize_map(s, ref, loops, lanes, p, shortest)
    parallelize(s, ref, outer, p)


def _fewest_lanes(s: Schedule, ref: BlockRef, p: Planner) -> int:
    """Returns the lanes of a vector of the widest elements that a block reads or writes: as many convert at once."""
    block = block_of(s, ref)
    return min([p.lanes(x.buffer.dtype.bits) for x in (*block.reads, *block.writes)])


def _is_serial(s: Schedule, ref: BlockRef) -> bool:
    return all(f.kind == "range" for f in loops_on(block_path(s.function, ref)))


def _fuse_flat(s: Schedule, ref: BlockRef, loops: list[LoopRef], lanes: int) -> list[LoopRef]:
    """Fuses all loops of a block that accesses every buffer at its plain axes: one flat pass over memory.

    A value that an axis is part of, as the condition of a triangle, would take divisions of a vector of flat indices: where rows
    are vectors, such loops stay.
    """
    block = block_of(s, ref)
    axes = [a.var for a in block.axes]
    shapes = [a.extent for a in block.axes]
    regions = [*block.reads, *block.writes]
    flat = all([r.begin for r in x.ranges] == axes and list(x.buffer.shape) == shapes for x in regions)
    if flat and size_of(shapes[-1]) >= lanes and size_of(shapes[-1]) % lanes and _computes_with(block, axes):
        return loops
    return [s.fuse(list(s.loops(ref)))] if flat and len(loops) > 1 else loops


def _computes_with(block: Block, axes: Sequence[Var]) -> bool:
    """Tells whether the value that *block* stores depends on its indices, and not only on the elements that it loads."""
    return not isinstance(block.body, Store) or not computed_with(block.body.value).isdisjoint(axes)


def _split_by_period(s: Schedule, ref: BlockRef, loops: list[LoopRef], lanes: int) -> list[LoopRef]:
    """Splits the last loop by the period with which a load starts again along it, so that each period is read in order.

    Of `x[i % 13]`, vectors across the end of a period would be gathered; those of a period are loaded.
    """
    block, extent = block_of(s, ref), s.extent(loops[-1])
    indices = [i for x in inputs_of(block) for i in x.indices if isinstance(i, FloorMod)]
    found = [split_index(i) for i in indices]
    periods = {f[1] for f in found if f is not None and f[0] is block.axes[-1].var}
    if len(periods) != 1 or extent is None or not isinstance(block.bindings[-1], Var):
        return loops
    (period,) = periods
    if extent % period or extent == period or period % lanes == 0 or period <= lanes // 2:
        return loops
    return [*loops[:-1], *s.split(loops[-1], [None, period])]
