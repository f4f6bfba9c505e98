"""The axes of a contraction that are tiled on grids, and the loops over them."""

from __future__ import annotations

from dataclasses import dataclass

from weft.cost import LONG_ENOUGH, size_of
from weft.ir import ONE, Expr, Var, free_vars, known_divisor, linear_terms
from weft.loop import Axis
from weft.schedule.cursors.state import BlockRef, LoopRef
from weft.schedule.rules.block_facts import (
    Contraction,
    block_of,
    contraction_of,
    inputs_of,
    merged_axes,
    reduce_axes,
    spatial_axes,
    uses_axis,
)
from weft.schedule.schedule import Schedule
from weft.support.errors import ScheduleError
from weft.targets.instructions import group_of


@dataclass(frozen=True)
class TileAxes:
    """The axes of a contraction that its tile has as rows, as columns, and along the reduction, and the factors' buffers."""

    row: Axis
    column: Axis
    depth: Axis
    factors: tuple[str, ...]


def tile_axes(s: Schedule, ref: BlockRef) -> TileAxes | None:
    """Returns the axes to tile, one of each kind; None for a block that is no contraction with rows and columns."""
    block = block_of(s, ref)
    found = contraction_of(block)
    if found is None or _is_packed(found) or len(inputs_of(block)) != 2 or len(block.writes) != 1:
        return None
    left, right = found.left, found.right
    rows = _used(spatial_axes(block), left=True, right=False, of=found)
    columns = _used(spatial_axes(block), left=False, right=True, of=found)
    depths = _used(reduce_axes(block), left=True, right=True, of=found)
    if not rows or not columns or not depths or left.buffer is right.buffer:
        return None
    return TileAxes(_longest(rows), _longest(columns), _longest(depths), (left.buffer.name, right.buffer.name))


def _is_packed(found: Contraction) -> bool:
    """Tells whether the right factor is packed in groups of terms for dot-product instructions."""
    return found.group is not None and size_of(found.group.extent) == group_of(found.left.buffer.dtype)


def _used(axes: list[Axis], *, left: bool, right: bool, of: Contraction) -> list[Axis]:
    """Returns those of *axes* that the factors are read along as told, and that have more than one element."""
    read = [a for a in axes if (uses_axis(of.left, a.var), uses_axis(of.right, a.var)) == (left, right)]
    return [a for a in read if size_of(a.extent) > 1]


def _longest(axes: list[Axis]) -> Axis:
    """Returns the last axis that is long enough for a tile, along which memory is read in order; the longest, if none is."""
    return max(reversed(axes), key=lambda a: min(size_of(a.extent), LONG_ENOUGH))


def reader_loops(
    s: Schedule, ref: BlockRef, reader: BlockRef, axes: TileAxes
) -> tuple[LoopRef, LoopRef, list[LoopRef]]:
    """Returns the consumer's loops over the tile's rows, over its columns, and the others; fuses axes merged by the reduction."""
    block, user = block_of(s, ref), block_of(s, reader)
    written = block.writes[0]
    read = next(x for x in inputs_of(user) if x.buffer is written.buffer)
    place = {r.begin: n for n, r in enumerate(written.ranges)}
    bound = {a.var: b for a, b in zip(user.axes, user.bindings, strict=True)}
    loops = {f.var: f for f in s.loops(reader)}
    found = []
    for axis in (axes.row, axes.column):
        merged = [bound[v] for v in merged_axes(read.indices[place[axis.var]], user)]
        if not merged or not all(isinstance(v, Var) for v in merged):
            raise ScheduleError(f"{reader.name} does not go along {axis.var.name}")
        found.append([loops.pop(v) for v in merged if isinstance(v, Var)])
    others = list(loops.values())
    s.reorder([*others, *found[0], *found[1]])
    row, column = [s.fuse(merged) if len(merged) > 1 else merged[0] for merged in found]
    return row, column, others


def own_loops(s: Schedule, ref: BlockRef, around: int) -> dict[Var, LoopRef]:
    """Returns the loops of *ref* inside of the first *around*, by the axis that they move; the outermost, where several do."""
    block, loops = block_of(s, ref), list(s.loops(ref))[around:]
    found: dict[Var, LoopRef] = {}
    for a, b in zip(block.axes, block.bindings, strict=True):
        moving = [f for f in loops if f.var in free_vars(b)]
        if moving:
            found[a.var] = moving[0]
    return found


def counts_terms(e: Expr, depth: Var, steps: int) -> bool:
    """Tells whether an index counts terms one by one along *depth*, from a multiple of so many *steps* on."""
    found = linear_terms(e, [depth])
    return found is not None and found[0].get(depth) == ONE and known_divisor(found[1]) % steps == 0
