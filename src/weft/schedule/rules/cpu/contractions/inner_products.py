"""The rule for products of rows by rows, both contiguous along the reduction: a tile of sums, each in the lanes of a vector.

    for j in range(0, N):                      for j0 in range(0, N // 8):
        for k in range(0, K):                      for k0 in range(0, K // 16):
            C[j] += x[k] * B[j, k]     ->              for j1 in unrolled(0, 8):
                                                           for l in vectorized(0, 16): sums of row j1 * (N // 8) + j0
                                                   C[j1 * (N // 8) + j0] = the sum of its lanes

Each vector of either factor that a tile loads is used for all of its rows or columns. Columns that lie far apart are as many
sequential streams of memory, for a matrix that no cache holds; those side by side share the caches' pages.
"""

from __future__ import annotations

from functools import partial
from math import prod

from weft.cost import FALLBACK_SIZE, InnerProblem, InnerTile, Planner, inner_tile_plans, size_of
from weft.ir import ONE, Const
from weft.loop import Block
from weft.schedule.cursors.state import BlockRef, LoopRef
from weft.schedule.rules.block_facts import block_of, contraction_of, reads_along, reduce_axes, spatial_axes, uses_axis
from weft.schedule.rules.cpu.horizontal_reduction import combine_lanes
from weft.schedule.rules.cpu.parallel import parallelize, sizes
from weft.schedule.schedule import Schedule


def is_inner_product(block: Block, p: Planner) -> bool:
    """Tells whether *block* sums products along one axis, along which both factors are contiguous, and longer than a vector.

    The last axis of the result is one of rows of the right factor alone.
    """
    found, reduced, axes = contraction_of(block), reduce_axes(block), spatial_axes(block)
    if found is None or found.conversions or found.group is not None or len(reduced) != 1 or not axes:
        return False
    depth, last = reduced[0], axes[-1]
    if not isinstance(depth.extent, Const) or not isinstance(last.extent, Const):
        return False
    if not 1 < p.lanes(block.writes[0].buffer.dtype.bits) < size_of(depth.extent):
        return False
    factors = (found.left, found.right)
    return all(reads_along(x, depth.var) for x in factors) and sum(uses_axis(x, last.var) for x in factors) == 1


def schedule_inner_products(s: Schedule, ref: BlockRef, p: Planner) -> set[BlockRef]:
    """Schedules such a product; returns the blocks that are now placed."""
    block = block_of(s, ref)
    lanes = p.lanes(block.writes[0].buffer.dtype.bits)
    *around, columns, depth = s.loops(ref)
    rows = _rows(s, block, around)
    outer = [f for f in around if f is not rows]
    problem = InnerProblem(
        others=prod(sizes(s, outer)),
        rows=1 if rows is None else s.extent(rows) or FALLBACK_SIZE,
        columns=size_of(spatial_axes(block)[-1].extent),
        depth=size_of(reduce_axes(block)[0].extent),
        lanes=lanes,
    )
    tile = p.decide(ref.name, InnerTile, partial(inner_tile_plans, problem))
    inner: list[LoopRef] = []
    if rows is not None and tile.rows > 1:
        rows, row = s.split(rows, [None, tile.rows])
        inner.append(row)
    if tile.pieces > 1:
        piece, columns = s.split(columns, [tile.pieces, None])
        outer.append(piece)
    if tile.columns > 1:
        column, columns = s.split(columns, [tile.columns, None])
        inner.append(column)
    tiles = [columns] if rows is None else [rows, columns] if tile.by_rows else [columns, rows]
    shared = [*outer, *tiles[: int(tile.by_rows)]]
    outer += tiles
    steps, lane = s.split(depth, [None, lanes])
    s.reorder([*outer, steps, *inner, lane])
    partial_sums = s.rfactor(ref, lane)
    s.set_scope(partial_sums, "register")
    start = s.decompose_reduction(partial_sums, steps)
    for sums in (partial_sums, start):
        *tiled, last = list(s.loops(sums))[-len(inner) - 1 :]
        _unroll(s, tiled)
        s.vectorize(last)
    combine_lanes(s, ref, lanes, lanes)
    _unroll(s, list(s.loops(ref))[len(outer) :][: len(inner)])
    parallelize(s, ref, shared, p)
    return {ref, partial_sums, start}


def _rows(s: Schedule, block: Block, around: list[LoopRef]) -> LoopRef | None:
    """Returns the loop over rows of the left factor, which all use the same right one; None where there is one row."""
    found, axes = contraction_of(block), spatial_axes(block)
    assert found is not None  # is_inner_product asks for it
    right = found.left if uses_axis(found.left, axes[-1].var) else found.right
    pairs = reversed(list(zip(around, axes, strict=False)))
    return next((f for f, a in pairs if a.extent is not ONE and not uses_axis(right, a.var)), None)


def _unroll(s: Schedule, loops: list[LoopRef]) -> None:
    for f in loops:
        s.unroll(f)
