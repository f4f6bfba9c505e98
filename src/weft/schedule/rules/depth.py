"""The rule for contractions whose right factor does not stay in cache for the next tile: their reduction is cut in blocks.

    for p in panels:                            for p in panels:
        for t in tiles of rows:                     for m in blocks of rows:
            for k in range(0, K): a tile    ->          for k0 in blocks of the reduction:
            what finishes the tile                          for t in tiles of these rows:
                                                                for k1 in range(0, kc): a tile of partial sums
                                                                sums of the rows += the tile
                                                        what finishes the rows

All tiles but the first of a block then find their panel of the right factor in the second-level cache, and each result is added
to once for each block of the reduction (the blocks kc and mc of Low, Igual, Smith and Quintana-Orti, "Analytical modeling is
enough for high-performance BLIS", 2016, section 4).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import prod

from weft.ir.expr import Const
from weft.loop.nodes import Block
from weft.schedule.rules.contraction import tile_nest
from weft.schedule.rules.facts import (
    FALLBACK_SIZE,
    block_of,
    contraction_of,
    elements,
    reduce_axes,
    size_of,
    spatial_axes,
)  # fmt: skip
from weft.schedule.rules.finish import finishing_block
from weft.schedule.rules.parallel import parallelize, wanted_tasks
from weft.schedule.rules.roles import Part, roles_of
from weft.schedule.rules.tiles import L2_SHARE, PANEL_VECTORS
from weft.schedule.rules.transform import own_loops
from weft.schedule.rules.vector import vectorize_last
from weft.schedule.schedule import Schedule
from weft.schedule.state import BlockRef, LoopRef
from weft.targets.target import Target

PANEL_SHARE = 0.35
"""The part of the second-level cache that a panel may fill in a block of the reduction: sums and rows of the left follow."""

SUMS_SHARE = 0.125
"""The part that the sums of a block of rows may fill."""

FEWEST_ROWS = 64
"""Rows of a block below which multiplying them takes no longer than reading a panel for them."""


def is_deep(block: Block, target: Target) -> bool:
    """Tells whether *block* is a contraction of several tiles with panels too large for the next tile to find them in cache."""
    reduced, axes = reduce_axes(block), spatial_axes(block)
    if contraction_of(block) is None or not all(isinstance(a.extent, Const) for a in reduced):
        return False
    shape = _shape(block, target)
    rows = prod([size_of(axes[n].extent) for n in shape.rows])
    several = rows > target.vector_registers // PANEL_VECTORS
    return several and shape.panel * elements(reduced) > L2_SHARE * target.l2


def schedule_deep(s: Schedule, ref: BlockRef, target: Target) -> set[BlockRef]:
    """Schedules a deep contraction with its finishing block; returns the blocks that are now in place."""
    finish, loops = finishing_block(s, ref)
    block = block_of(s, ref)
    lanes = target.lanes(block.writes[0].buffer.dtype.bits)
    shape = _shape(block, target)
    partial = _cut_reduction(s, ref, shape, target)
    outer, inner = _cut_rows(s, block, loops, shape, target)
    if not outer:
        outer = [s.add_unit_loop(finish)]  # all results are one block
    s.reorder([*outer, *inner])
    s.compute_at(ref, outer[-1])
    s.set_scope(ref, "global")
    vectorize_last(s, inner, lanes)
    *spatial, step = list(s.loops(ref))[len(outer) :]
    s.reorder([step, *spatial])
    start = s.decompose_reduction(ref, step)
    vectorize_last(s, list(s.loops(start))[len(outer) :], lanes)
    own = own_loops(s, ref, len(outer) + 1)
    tiled = [None, *[own.get(a.var) for a in spatial_axes(block_of(s, ref))]]
    placed = tile_nest(s, partial, ref, tiled, target, share=False)
    parallelize(s, outer, elements(block.axes), target)
    return {finish, start, *placed}


def _cut_reduction(s: Schedule, ref: BlockRef, shape: _Shape, target: Target) -> BlockRef:
    """Makes *ref* the sum of partial results, one for each block of its reduction; returns the block that computes them."""
    block = block_of(s, ref)
    loops, count = list(s.loops(ref)), len(spatial_axes(block))
    spatial, reduced = loops[:count], loops[count:]
    sizes = [size_of(a.extent) for a in reduce_axes(block)]
    least = -(-shape.panel * prod(sizes) // int(PANEL_SHARE * target.l2))
    longest = sizes.index(max(sizes))
    cut = next((n for n, size in enumerate(sizes) if size >= least), longest)
    least = min(least, sizes[cut])
    even = [n for n in range(least, min(sizes[cut], 2 * least) + 1) if sizes[cut] % n == 0]
    step, reduced[cut] = s.split(reduced[cut], [even[0] if even else least, None])
    s.reorder([step, *spatial, *reduced])
    return s.rfactor(ref, step, 0)


def _cut_rows(
    s: Schedule, block: Block, loops: Sequence[LoopRef], shape: _Shape, target: Target
) -> tuple[list[LoopRef], list[LoopRef]]:
    """Splits the loops of the results; returns those over panels and blocks of rows, and those over what is in one."""
    axes = spatial_axes(block)
    outer = [f for n, f in enumerate(loops[:-1]) if n not in shape.rows]
    inner = [loops[n] for n in shape.rows]
    last = loops[-1]
    if shape.column is not None:
        outer.remove(loops[shape.column])
        rest, piece = s.split(loops[shape.column], [None, shape.columns])
        outer.append(rest)
        inner.append(piece)
    if not isinstance(axes[-1].extent, Const) or size_of(axes[-1].extent) > shape.width:
        rest, last = s.split(last, [None, shape.width])
        outer.append(rest)
    most = min(int(SUMS_SHARE * target.l2) // shape.panel, _shared_rows(s, outer, inner, target))
    for n in reversed(range(len(shape.rows))):
        extent = s.extent(inner[n])
        if extent is None or extent > most:
            rest, inner[n] = s.split(inner[n], [None, most])
            outer.append(rest)
        most = max(1, most // (extent or most))
    return outer, [*inner, last]


def _shared_rows(s: Schedule, outer: Sequence[LoopRef], inner: Sequence[LoopRef], target: Target) -> int:
    """Returns how many rows a block may have for all cores to be kept busy, but not so few that reading panels shows."""
    tasks, rows = (prod([s.extent(f) or FALLBACK_SIZE for f in loops]) for loops in (outer, inner))
    pieces = -(-wanted_tasks(target) // tasks)
    return max(FEWEST_ROWS, -(-rows // pieces))


@dataclass(frozen=True)
class _Shape:
    """What a panel of the right factor is as wide as: *columns* of *width* elements, *panel* bytes in a step of the reduction.

    The axes of *rows* and of the *column* are given by position.
    """

    rows: list[int]
    column: int | None
    columns: int
    width: int
    panel: int


def _shape(block: Block, target: Target) -> _Shape:
    axes, dtype = spatial_axes(block), block.writes[0].buffer.dtype
    roles = roles_of(block, [Part(a, a.extent) for a in axes[:-1]])
    most = PANEL_VECTORS * target.lanes(dtype.bits)
    width = min(size_of(axes[-1].extent), most)
    columns = 1 if roles.column is None else min(size_of(axes[roles.column].extent), most // width)
    rows = sorted({n for n in (roles.row, roles.outer_row) if n is not None})
    column = roles.column if columns > 1 else None
    return _Shape(rows, column, columns, width, columns * width * dtype.bytes)
