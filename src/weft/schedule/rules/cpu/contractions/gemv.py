"""The rule for GEMV from memory, one row times a matrix that no cache holds: the matrix is read row by row, several at a time.

    for j in tiles of columns:                  for p in pieces of columns:
        for k in range(0, K): a tile                for k0 in blocks of rows:
        epilogue of the tile           ->               for j in vectors of the piece:
                                                            for k1 in unrolled(0, 8): sums += x[k] * a vector of row k
                                                    epilogue of the piece

Each element is used once, so the product is bound by memory bandwidth. A register tile reads a few cache lines of each row
before it goes on to the next row, in another page, where hardware prefetchers do not follow. A few rows side by side are as many
sequential streams, and their sums stay in the first-level cache. Rows are split only so that each core has a piece.
"""

from __future__ import annotations

from math import prod

from weft.cost import Gemv, Planner, bytes_of, gemv_plans, size_of, step_along
from weft.ir import Const
from weft.loop import Block
from weft.schedule.cursors.state import BlockRef
from weft.schedule.rules.block_facts import (
    block_of,
    contraction_of,
    reduce_axes,
    spatial_axes,
)
from weft.schedule.rules.cpu.contractions.tile_roles import Part, roles_of
from weft.schedule.rules.cpu.epilogue import epilogue_block
from weft.schedule.rules.cpu.parallel import parallelize, sizes
from weft.schedule.rules.cpu.vectorize_axis import vectorize_last
from weft.schedule.schedule import Schedule


def gemv_matrix(block: Block) -> tuple[int, int] | None:
    """Returns the bytes of a row and of the whole matrix, if *block* multiplies one row with a matrix.

    In a batch each matrix has one row. The matrix is read in memory order, row after row, along the reduction.
    """
    found, reduced, axes = contraction_of(block), reduce_axes(block), spatial_axes(block)
    if found is None or len(reduced) != 1 or not all(isinstance(a.extent, Const) for a in (*reduced, axes[-1])):
        return None
    right, row = found.right, size_of(found.right.buffer.shape[-1])
    roles = roles_of(block, [Part(a, a.extent) for a in axes[:-1]])
    if roles.row is not None and not roles.shared:
        return None
    follows = step_along(right.buffer, right.indices, reduced[0].var) == row
    beside = step_along(right.buffer, right.indices, axes[-1].var) == 1
    return (row * right.buffer.dtype.bytes, bytes_of(right.buffer)) if follows and beside else None


def schedule_gemv(s: Schedule, ref: BlockRef, p: Planner) -> set[BlockRef]:
    """Schedules such a product with its epilogue block; returns the blocks that are now placed."""
    finish, loops = epilogue_block(s, ref)
    block = block_of(s, ref)
    dtype = block.writes[0].buffer.dtype
    lanes, columns = p.lanes(dtype.bits), size_of(spatial_axes(block)[-1].extent)
    others = prod(sizes(s, loops[:-1]))
    cut = p.decide(ref.name, Gemv, lambda m: gemv_plans(columns * dtype.bytes, others, m))
    step = cut.vectors * lanes
    piece, inner = s.split(loops[-1], [None, -(-columns // (cut.pieces * step)) * step])
    outer = [*loops[:-1], piece]
    s.reorder([*outer, inner])
    s.compute_at(ref, piece)
    s.set_scope(ref, "global")
    vectorize_last(s, [inner], lanes)
    last, reduced = list(s.loops(ref))[-2:]
    block_of_rows, row = s.split(reduced, [None, cut.rows])
    step_of_row, vector = s.split(last, [None, step])
    s.reorder([block_of_rows, step_of_row, row, vector])
    start = s.decompose_reduction(ref, block_of_rows)
    s.unroll(row)
    s.vectorize(vector)
    vectorize_last(s, list(s.loops(start))[len(outer) :], lanes)
    parallelize(s, ref, outer, p)
    return {finish, ref, start}
