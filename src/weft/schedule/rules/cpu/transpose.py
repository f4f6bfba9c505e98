"""The rule for rearrangements that turn rows into columns: square tiles, transposed in registers.

The last axis of the output is strided in the input, and another axis is contiguous there. Both are cut to the length of a vector:
the tile is read by rows and written by columns, and code generation turns the loads of an unrolled tile into shuffles. Where the
output is padded along its last axis, so are the tiles. Maps of such an element and of others, which are read in the order of the
output, are computed in the tile.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Final

from weft.cost import Planner, TileOrder, elements, size_of, step_along, tile_order_plans
from weft.ir import ONE, Bounds, Const, Expr, FloorDiv, FloorMod, Select, Var, free_vars, prove
from weft.loop import Axis, Block, Load, Store, stores
from weft.schedule.cursors.state import BlockRef, LoopRef
from weft.schedule.legality.trust import proving
from weft.schedule.rules.block_facts import block_of, inputs_of, is_reduction, reads_along, uses_axis
from weft.schedule.rules.cpu.parallel import parallelize
from weft.schedule.schedule import Schedule
from weft.support.errors import ScheduleError

PROVED: Final = 2
"""Axes of which any pieces are known to come apart: of more, digits of an element's number are told apart in some cases only."""


@dataclass(frozen=True)
class Groups:
    """Positions of axes: those that run along the output's rows, and those that run along the input's, where it is *turned*."""

    written: Sequence[int]
    read: Sequence[int]
    turned: Load


def schedule_transpose(s: Schedule, ref: BlockRef, p: Planner) -> bool:
    """Schedules a block that is such a rearrangement; returns whether it is one."""
    block = block_of(s, ref)
    lanes = p.lanes(block.writes[0].buffer.dtype.bits)
    groups = _groups_worth_it(block, lanes)
    if groups is None:
        return False
    if len(s.loops(ref)) != len(block.axes):
        return False
    groups = _that_comes_apart(s, ref, groups, lanes)
    inside = _innermost(block, groups, ref, p)
    parallelize(s, ref, _turn(s, ref, groups, lanes, inside), p)
    return True


def _that_comes_apart(s: Schedule, ref: BlockRef, groups: Groups, lanes: int) -> Groups:
    """Returns *groups*, with fewer axes along the rows written where pieces of three and more can't be proved to be apart."""
    while len(groups.written) > PROVED:
        try:
            with proving():
                _turn(Schedule(s.program), ref, groups, lanes, "written")
        except ScheduleError:
            groups = replace(groups, written=groups.written[1:])
        else:
            break
    return groups


def _turn(s: Schedule, ref: BlockRef, groups: Groups, lanes: int, inside: str) -> list[LoopRef]:
    """Cuts a block into tiles; returns the loops over them, those along the rows *inside* names innermost."""
    loops = list(s.loops(ref))
    written = [loops[n] for n in groups.written]
    read = [loops[n] for n in groups.read]
    rest = [f for n, f in enumerate(loops) if n not in groups.written and n not in groups.read]
    s.reorder([*rest, *read, *written])
    read_outer, read_inner = s.split(s.fuse(read) if len(read) > 1 else read[0], [None, lanes])
    outer, inner = s.split(s.fuse(written) if len(written) > 1 else written[0], [None, lanes])
    orders = {
        "written": [*rest, read_outer, outer],
        "read": [*rest, outer, read_outer],
        "rest": [outer, read_outer, *rest],
    }
    s.reorder([*orders[inside], read_inner, inner])
    s.unroll(read_inner)
    s.vectorize(inner)
    return orders[inside]


def _innermost(block: Block, groups: Groups, ref: BlockRef, p: Planner) -> str:
    """Decides which tile follows one: the next along the rows read, along the rows written, or of the rest of the axes."""
    if not isinstance(groups.turned.indices[-1], Var):
        return "written"  # a row that is read is no longer than a tile
    (store,) = stores(block.body)
    size, axes = store.buffer.dtype.bytes, block.axes
    apart_read = size * abs(step_along(groups.turned.buffer, groups.turned.indices, axes[groups.written[-1]].var))
    apart_written = size * abs(step_along(store.buffer, store.indices, axes[groups.read[-1]].var))
    return p.decide(ref.name, TileOrder, lambda m: tile_order_plans(apart_read, apart_written, m)).inside


def turns_rows(block: Block, lanes: int) -> bool:
    """Tells whether *block* is such a rearrangement, in tiles of so many *lanes*."""
    return _groups_worth_it(block, lanes) is not None


def _groups_worth_it(block: Block, lanes: int) -> Groups | None:
    groups = _groups(block, lanes)
    return groups if groups is not None and _is_worth_it(block, groups, lanes) else None


def _groups(block: Block, lanes: int) -> Groups | None:
    """Finds the axes of a tile; None for a block that turns nothing, or several inputs in several ways."""
    axes = list(block.axes)
    turned = _turned(block) if axes else None
    if turned is None:
        return None
    load, inside = turned
    if not load.indices:
        return None  # one number, everywhere
    column = _moving_axis(load.indices[-1], axes)
    if reads_along(load, axes[-1].var) or column is None or column == len(axes) - 1:
        return None
    written = _run(load, axes, len(axes) - 1, column)
    read: Sequence[int] = range(column, column + 1)
    if isinstance(load.indices[-1], Var):
        read = _lengthened(_run(load, axes, column, -1), load, axes, written, lanes)
    by_row = inside is None or not any(axes[n].var in free_vars(inside) for n in read)
    return Groups(written, read, load) if by_row and not set(written) & set(read) else None


def _turned(block: Block) -> tuple[Load, Expr | None] | None:
    """Returns the input element that a block turns, and the condition that it is no padding; None for other blocks.

    All others are read in the order of the output, or turned alike.
    """
    value = block.body.value if isinstance(block.body, Store) else None
    if is_reduction(block) or value is None:
        return None
    if isinstance(value, Select) and isinstance(value.then, Load) and isinstance(value.other, Const):
        return (value.then, value.cond) if inputs_of(block) == [value.then] else None
    last = block.axes[-1].var
    strided = [x for x in inputs_of(block) if uses_axis(x, last) and not reads_along(x, last)]
    alike = {(x.indices, x.buffer.shape) for x in strided}
    return (strided[0], None) if len(alike) == 1 else None


def _moving_axis(index: Expr, axes: Sequence[Axis]) -> int | None:
    """Returns the position of the axis along which an index moves by one: `v`, or `v % c`."""
    v = index.a if isinstance(index, FloorMod) else index
    return next((n for n, a in enumerate(axes) if a.var is v), None)


def _run(load: Load, axes: Sequence[Axis], end: int, stop: int) -> range:
    """Returns the run of axes up to *end* that are adjacent in the input as well, and so act as one long axis.

    An axis that may have no elements, as a window's that may be larger than the image, is not fused with those around: no place
    along them could be divided by its extent.
    """
    begin = end
    while begin - 1 > stop and _are_neighbours(load, axes[begin - 1], axes[begin]) and _has_elements(axes[begin]):
        begin -= 1
    return range(begin, end + 1)


def _lengthened(
    run: Sequence[int], load: Load, axes: Sequence[Axis], written: Sequence[int], lanes: int
) -> Sequence[int]:
    """Returns *run*, while it is shorter than a vector, with axes before it that are adjacent in the input alone.

    Of an image whose few channels are last, `[n, place, channel]` becoming `[channel, place, n]`, it is places and channels.
    """
    number = {a.var: n for n, a in enumerate(axes)}
    while elements([axes[n] for n in run]) < lanes:
        before = len(load.indices) - len(run) - 1
        index = load.indices[before] if before >= 0 else None
        outer = number.get(index) if isinstance(index, Var) else None
        if outer is None or outer in written or not _are_neighbours(load, axes[outer], axes[run[0]]):
            break
        if not _has_elements(axes[outer]):
            break
        run = [outer, *run]
    return run


def _has_elements(axis: Axis) -> bool:
    """Tells whether an axis is certain to have an element, whatever sizes are unknown."""
    bounds = Bounds()
    for v in free_vars(axis.extent):
        bounds = bounds.bind(v, *v.size_range)
    return prove(axis.extent >= ONE, bounds)


def _are_neighbours(load: Load, outer: Axis, inner: Axis) -> bool:
    """Tells whether two axes index neighbouring dimensions of the input, the inner one all of its dimension."""
    indices = load.indices
    for d in range(len(indices) - 1):
        if indices[d] is outer.var and indices[d + 1] is inner.var:
            return load.buffer.shape[d + 1] is inner.extent
    return False


def _is_worth_it(block: Block, groups: Groups, lanes: int) -> bool:
    """Tells whether both sides of the tile are at least a vector long, and a `v % c` is cut into whole vectors."""
    sides = [elements([block.axes[n] for n in side]) for side in (groups.written, groups.read)]
    last = groups.turned.indices[-1]
    modulus = size_of(last.b) if isinstance(last, FloorMod | FloorDiv) else lanes
    return min(sides) >= lanes and modulus % lanes == 0
