"""The rule for one row times a matrix that no cache holds: the matrix is read row by row, several at a time.

    for j in tiles of columns:                  for p in pieces of columns:
        for k in range(0, K): a tile                for k0 in blocks of rows:
        what finishes the tile         ->               for j in vectors of the piece:
                                                            for k1 in unrolled(0, 8): sums += x[k] * a vector of row k
                                                    what finishes the piece

Each element is used once, so that memory decides. A tile takes a few lines of each row before it goes on to the next one, in
another page, which neither memory nor what foresees its use is quick at. A few rows side by side are as many streams, and their
sums stay near meanwhile. Rows are cut only so that each core has a piece.
"""

from __future__ import annotations

from math import prod

from weft.ir.expr import Const
from weft.loop.nodes import Block
from weft.schedule.rules.facts import (
    FALLBACK_SIZE,
    block_of,
    contraction_of,
    elements,
    reduce_axes,
    size_of,
    spatial_axes,
)
from weft.schedule.rules.finish import finishing_block
from weft.schedule.rules.footprint import bytes_of, step_along
from weft.schedule.rules.parallel import parallelize
from weft.schedule.rules.roles import Part, roles_of
from weft.schedule.rules.vector import vectorize_last
from weft.schedule.schedule import Schedule
from weft.schedule.state import BlockRef
from weft.targets.target import PAGE, Target

ROWS = 8
"""Rows read side by side: 4 of them read 21 GB/s from memory, 8 and 16 read 24, tiles of columns 14."""

VECTORS = 2
"""Vectors of each row in a step."""

SUMS_SHARE = 0.25
"""The part of the second-level cache that the sums may fill."""


def reads_long_rows(block: Block, target: Target) -> bool:
    """Tells whether *block* multiplies one row with a matrix, or one with each of several, that the last cache does not hold."""
    found, reduced, axes = contraction_of(block), reduce_axes(block), spatial_axes(block)
    if found is None or len(reduced) != 1 or not all(isinstance(a.extent, Const) for a in (*reduced, axes[-1])):
        return False
    right, row = found.right, size_of(found.right.buffer.shape[-1])
    roles = roles_of(block, [Part(a, a.extent) for a in axes[:-1]])
    if (roles.row is not None and not roles.shared) or size_of(reduced[0].extent) < 2 * ROWS:
        return False
    follows = step_along(right.buffer, right.indices, reduced[0].var) == row
    beside = step_along(right.buffer, right.indices, axes[-1].var) == 1
    return follows and beside and row * right.buffer.dtype.bytes >= PAGE and bytes_of(right.buffer) > target.l3


def schedule_long_rows(s: Schedule, ref: BlockRef, target: Target) -> set[BlockRef]:
    """Schedules such a product with its finishing block; returns the blocks that are now in place."""
    finish, loops = finishing_block(s, ref)
    block = block_of(s, ref)
    dtype = block.writes[0].buffer.dtype
    lanes, columns = target.lanes(dtype.bits), size_of(spatial_axes(block)[-1].extent)
    others = prod([s.extent(f) or FALLBACK_SIZE for f in loops[:-1]])
    pieces = max(-(-columns * dtype.bytes // int(SUMS_SHARE * target.l2)), -(-target.cores // others))
    step = VECTORS * lanes
    piece, inner = s.split(loops[-1], [None, -(-columns // (pieces * step)) * step])
    outer = [*loops[:-1], piece]
    s.reorder([*outer, inner])
    s.compute_at(ref, piece)
    s.set_scope(ref, "global")
    vectorize_last(s, [inner], lanes)
    last, reduced = list(s.loops(ref))[-2:]
    block_of_rows, row = s.split(reduced, [None, ROWS])
    step_of_row, vector = s.split(last, [None, step])
    s.reorder([block_of_rows, step_of_row, row, vector])
    start = s.decompose_reduction(ref, block_of_rows)
    s.unroll(row)
    s.vectorize(vector)
    vectorize_last(s, list(s.loops(start))[len(outer) :], lanes)
    parallelize(s, outer, elements(block.axes), target)
    return {finish, ref, start}
