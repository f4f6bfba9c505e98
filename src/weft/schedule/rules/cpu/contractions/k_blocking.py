"""K blocking, for contractions whose right factor does not stay in cache for the next tile: the reduction is split in blocks.

    for p in panels:                            for p in panels:
        for t in tiles of rows:                     for m in blocks of rows:
            for k in range(0, K): a tile    ->          for k0 in blocks of the reduction:
            epilogue of the tile                            for t in tiles of these rows:
                                                                for k1 in range(0, kc): a tile of partial sums
                                                                sums of the rows += the tile
                                                        epilogue of the rows

All tiles but the first of a block then find their panel of the right factor in the second-level cache, and each result is added
to once for each block of the reduction (the blocks kc and mc of Low, Igual, Smith and Quintana-Orti, "Analytical modeling is
enough for high-performance BLIS", 2016, section 4).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from math import prod

from weft.cost import (
    PANEL_VECTORS,
    ColumnBlock,
    DepthProblem,
    KBlocks,
    Planner,
    RowBlock,
    TileProblem,
    bytes_of,
    column_block_plans,
    elements,
    k_block_plans,
    row_block_plans,
    size_of,
    step_along,
)
from weft.ir import Const
from weft.loop import Block
from weft.schedule.cursors.state import BlockRef, LoopRef
from weft.schedule.rules.block_facts import (
    block_of,
    contraction_of,
    reduce_axes,
    spatial_axes,
    uses_axis,
)
from weft.schedule.rules.cpu.contractions.contraction import tile_nest, tile_problem
from weft.schedule.rules.cpu.contractions.skip_padding import padding_of
from weft.schedule.rules.cpu.contractions.tile_roles import Part, roles_of
from weft.schedule.rules.cpu.epilogue import epilogue_block
from weft.schedule.rules.cpu.parallel import parallelize, sizes
from weft.schedule.rules.cpu.small_transform import own_loops
from weft.schedule.rules.cpu.vectorize_axis import vectorize_last
from weft.schedule.schedule import Schedule


def depth_problem(s: Schedule, ref: BlockRef, p: Planner) -> DepthProblem | None:
    """Returns the panel, the reduction's length and the rows of a contraction of constant sizes; None for any other block."""
    block = block_of(s, ref)
    if contraction_of(block) is None or not all(isinstance(a.extent, Const) for a in reduce_axes(block)):
        return None
    padding = padding_of(s, ref)
    shape = _shape(block, p)
    known = replace(_depth(block, shape), inside=1.0 if padding is None else padding.share)
    return known if padding is None else replace(known, tile=_problem_of_panels(block, shape))


def _depth(block: Block, shape: _Shape) -> DepthProblem:
    reduced, axes, found = reduce_axes(block), spatial_axes(block), contraction_of(block)
    rows = prod([size_of(axes[n].extent) for n in shape.rows])
    whole = DepthProblem(shape.panel, elements(reduced), rows)
    if found is None or not reduced:
        return whole
    left, size = found.left, found.left.buffer.dtype.bytes
    apart = [size * abs(step_along(left.buffer, left.indices, a.var)) for a in reduced]
    axis = apart.index(max(apart))
    planes, image = size_of(reduced[axis].extent), bytes_of(left.buffer)
    places = prod([size_of(a.extent) for a in axes if not uses_axis(found.right, a.var)])
    return replace(whole, axis=axis, planes=planes, apart=apart[axis], image=image, places=places)


def schedule_k_blocked(s: Schedule, ref: BlockRef, p: Planner) -> set[BlockRef]:
    """Schedules a contraction over a long reduction with its epilogue block; returns the blocks that are now placed."""
    finish, loops = epilogue_block(s, ref)
    block = block_of(s, ref)
    lanes = p.lanes(block.writes[0].buffer.dtype.bits)
    shape = _shape(block, p)
    problem = _problem_of_panels(block, shape)
    blocks, partial = _cut_reduction(s, ref, shape, p)
    shape = _with_columns(ref, shape, replace(problem, depth=problem.depth // blocks), p)
    outer, inner = _cut_rows(s, ref, loops, shape, p)
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
    placed = tile_nest(s, partial, ref, tiled, p, share=False)
    parallelize(s, finish, outer, p)
    return {finish, start, *placed}


def _cut_reduction(s: Schedule, ref: BlockRef, shape: _Shape, p: Planner) -> tuple[int, BlockRef]:
    """Makes *ref* the sum of partial results, one for each block of its reduction.

    Returns the number of blocks, and the block of the program that computes the partial results.
    """
    block = block_of(s, ref)
    loops, count = list(s.loops(ref)), len(spatial_axes(block))
    spatial, reduced = loops[:count], loops[count:]
    sizes, problem = [size_of(a.extent) for a in reduce_axes(block)], _depth(block, shape)
    cut = p.decide(ref.name, KBlocks, lambda m: k_block_plans(problem, sizes, m))
    step, reduced[cut.axis] = s.split(reduced[cut.axis], [cut.blocks, None])
    s.reorder([step, *spatial, *reduced])
    return cut.blocks, s.rfactor(ref, step, 0)


def _problem_of_panels(block: Block, shape: _Shape) -> TileProblem:
    """Returns the sizes for which a tile of *block* is chosen, along panels of *shape* and with any of the columns."""
    parts = [Part(a, a.extent) for a in spatial_axes(block)]
    problem = tile_problem(block, parts, roles_of(block, parts[:-1]))
    return replace(problem, last=min(problem.last, shape.width))


def _with_columns(ref: BlockRef, shape: _Shape, problem: TileProblem, p: Planner) -> _Shape:
    """Returns *shape* with as many columns as tiles of a block of the reduction, the *problem*, leave the least rest of."""
    if shape.column is None:
        return shape
    columns = p.decide(ref.name, ColumnBlock, lambda m: column_block_plans(problem, shape.columns, m)).columns
    return replace(shape, columns=columns, panel=shape.panel // shape.columns * columns)


def _cut_rows(
    s: Schedule, ref: BlockRef, loops: Sequence[LoopRef], shape: _Shape, p: Planner
) -> tuple[list[LoopRef], list[LoopRef]]:
    """Splits the loops of the results; returns those over panels and blocks of rows, and those inside of one."""
    axes = spatial_axes(block_of(s, ref))
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
    tasks, rows = (prod(sizes(s, loops)) for loops in (outer, inner))
    most = p.decide(ref.name, RowBlock, lambda m: row_block_plans(shape.panel, tasks, rows, m)).rows
    for n in reversed(range(len(shape.rows))):
        extent = s.extent(inner[n])
        if extent is None or extent > most:
            rest, inner[n] = s.split(inner[n], [None, most])
            outer.append(rest)
        most = max(1, most // (extent or most))
    return outer, [*inner, last]


@dataclass(frozen=True)
class _Shape:
    """The width of a panel of the right factor: *columns* of *width* elements, *panel* bytes in a step of the reduction.

    The axes of *rows* and of the *column* are given by position.
    """

    rows: list[int]
    column: int | None
    columns: int
    width: int
    panel: int


def _shape(block: Block, p: Planner) -> _Shape:
    axes, dtype = spatial_axes(block), block.writes[0].buffer.dtype
    roles = roles_of(block, [Part(a, a.extent) for a in axes[:-1]])
    lanes = p.lanes(dtype.bits)
    most = PANEL_VECTORS * lanes
    width = _panel_width(size_of(axes[-1].extent), lanes)
    columns = 1 if roles.column is None else min(size_of(axes[roles.column].extent), most // width)
    rows = sorted({n for n in (roles.row, roles.outer_row) if n is not None})
    column = roles.column if columns > 1 else None
    return _Shape(rows, column, columns, width, columns * width * dtype.bytes)


def _panel_width(extent: int, lanes: int) -> int:
    """Returns how many of *extent* columns a panel has: up to `PANEL_VECTORS` vectors, without a remainder where that can be.

    A remainder would be of the next panel where *extent* is the block of a packed factor, and all panels be computed for it.
    """
    parts = (n * lanes for n in range(PANEL_VECTORS, 1, -1))
    return next((width for width in parts if extent % width == 0), min(extent, PANEL_VECTORS * lanes))
