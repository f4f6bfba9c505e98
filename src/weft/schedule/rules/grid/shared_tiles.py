"""Tiled contractions: a thread block fetches parts of both factors into shared memory; each thread accumulates in registers.

    for i, j, r: C[i, j] += A[i, r] * B[r, j]
    for i, j:    D[i, j] = f(C[i, j])

    for bi, bj in blocks:
        for ti, tj in threads: c[4, 4] = 0                              # registers of each thread
        for ko in range(0, k // 16):
            for ti, tj in threads: A_shared[...] = A[...]; B_shared[...] = B[...]
            for ti, tj in threads:
                for ki, ri, rj: c[ri, rj] += A_shared[ri, ki] * B_shared[ki, rj]
        for ti, tj in threads: D[...] = f(c[...])

After Volkov and Demmel, "Benchmarking GPUs to tune dense linear algebra" (2008). A convolution is the product of its channels and
one row of its image, at each of its other positions: the implicit GEMM, without the patches. The axes that are neither rows nor
columns of the tile are the blocks along z.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import gcd

from weft.cost import (
    BANKS,
    NO_TILE,
    PartExtent,
    Planner,
    SharedTile,
    TiledProduct,
    elements,
    shared_tile_plans,
    size_of,
)
from weft.ir import Expr, RangesOrZero, Var
from weft.loop import Block
from weft.schedule.cursors.state import BlockRef, LoopRef
from weft.schedule.rules.block_facts import (
    block_of,
    inputs_of,
    reduce_axes,
    spatial_axes,
)
from weft.schedule.rules.grid.filled_axes import fill_up
from weft.schedule.rules.grid.partial_sums import partial_sums, split_k
from weft.schedule.rules.grid.thread_reduction import reader_of
from weft.schedule.rules.grid.tile_axes import TileAxes, own_loops, reader_loops, tile_axes
from weft.schedule.rules.grid.tile_parts import fetch_together, lay_out_part
from weft.schedule.rules.grid.trying import Trials
from weft.schedule.schedule import Schedule
from weft.support.errors import ScheduleError


def schedule_shared_tiles(s: Schedule, ref: BlockRef, p: Planner, threads: int) -> bool:
    """Tiles a contraction, if that pays; tells whether it did. Partial sums are added by blocks of so many *threads*."""
    axes = tile_axes(s, ref)
    if axes is None:
        return False
    block = block_of(s, ref)
    trials = Trials[SharedTile](s, p, lambda trial, tile: _tile(trial, ref, axes, tile, threads))

    def is_legal(tile: SharedTile) -> bool:  # its consumer may have other axes, or bounds may be unprovable
        return tile == NO_TILE or trials.can_take(tile)

    rows, columns = size_of(axes.row.extent), size_of(axes.column.extent)
    batch, terms = elements(spatial_axes(block)) // max(1, rows * columns), elements(reduce_axes(block))
    product = TiledProduct(rows, columns, batch, terms, size_of(axes.depth.extent), _parts(block, axes))
    tile = p.decide(ref.name, SharedTile, lambda m: shared_tile_plans(product, m), is_legal)
    if tile == NO_TILE:
        return False
    trials.carry_out(tile)
    return True


def _parts(block: Block, axes: TileAxes) -> tuple[tuple[tuple[PartExtent, ...], int], ...]:
    """Returns the part of each factor that a thread block fetches, extended by other reduced axes, such as a window's."""
    tiled = (axes.row, axes.column, axes.depth)
    reach = {a.var: (0, size_of(a.extent) - 1) for a in reduce_axes(block) if a not in tiled}

    def extent(e: Expr) -> PartExtent:
        rest = RangesOrZero({}).ends_of(e)[1]
        row, column, step = [abs(RangesOrZero({a.var: (0, 1)}).ends_of(e)[1] - rest) for a in tiled]
        low, high = RangesOrZero(reach).ends_of(e)
        return PartExtent(1 + high - low, row, column, step)

    return tuple([(tuple([extent(i) for i in x.indices]), x.buffer.dtype.bytes) for x in inputs_of(block)])


def _tile(s: Schedule, ref: BlockRef, axes: TileAxes, tile: SharedTile, threads: int) -> None:
    """Applies a tile; a kernel that adds partial sums has blocks of *threads* threads."""
    if min(tile.high, tile.wide) == 1:
        raise ScheduleError("a tile has several rows, and several columns")
    if tile.filled:
        axes = fill_up(s, ref, _filled_sizes(axes, tile))
    split_k(s, ref, axes, tile.parts, threads, lambda sums, own: _tile_blocks(s, sums, own, tile))


def _filled_sizes(axes: TileAxes, tile: SharedTile) -> dict[Var, int]:
    """Returns the factors of the padded axes: whole steps of all parts, and, where another kernel adds the sums, whole tiles.

    A fetch under a condition waits for the one before.
    """
    sizes = {axes.depth.var: tile.parts * tile.steps}
    if tile.parts > 1:
        sizes |= {axes.row.var: tile.high, axes.column.var: tile.wide}
    return sizes


def _tile_blocks(s: Schedule, ref: BlockRef, axes: TileAxes, tile: SharedTile) -> None:
    """Assigns a tile of the results to each thread block."""
    reader = reader_of(s, ref)
    row, column, others = reader_loops(s, ref, reader, axes)
    is_whole = (s.extent(column) or 1) % tile.run == 0
    if tile.groups > 1:
        z = gcd(tile.groups, tile.rows) if (s.extent(row) or 1) % tile.high == 0 else 1
        block_row, *rows = s.split(row, [None, tile.rows // z, z, tile.y])
        block_column, *columns = s.split(column, [None, tile.columns, tile.x])
        threads, own = [*rows[1:], columns[1]], [rows[0], columns[0]]
    else:
        block_row, *rows = s.split(row, [None, *tile.row_parts])
        block_column, *columns = s.split(column, [None, *tile.column_parts])
        threads, own = _threads_and_results(rows, columns)
    s.reorder([*others, block_row, block_column, *threads, *own])
    if others:
        s.bind(s.fuse(others) if len(others) > 1 else others[0], "blockIdx.z")
    s.bind(block_row, "blockIdx.y")
    s.bind(block_column, "blockIdx.x")
    around = len(s.loops(reader)) - len(threads) - len(own)
    if tile.groups > 1:
        _add_groups(s, ref, axes, tile, block_column, own[-1])
        _bind(s, threads, (z, tile.y, tile.x))
        return
    s.compute_at(ref, block_column)
    _sum_up(s, ref, axes, tile, around)
    _bind(s, threads, (tile.across, tile.y, tile.x))
    if tile.run > 1 and is_whole:
        s.vectorize(own[-1])


def _add_groups(s: Schedule, ref: BlockRef, axes: TileAxes, tile: SharedTile, block: LoopRef, element: LoopRef) -> None:
    """Lets groups of threads reduce different steps of a *block*, and adds their sums for each *element* of the reader."""
    sums, own = partial_sums(s, ref, axes, [None, tile.groups, tile.depth], 1)
    copy = s.cache_write(sums, "register")
    s.set_scope(copy, "shared")
    s.compute_at(ref, element)
    s.set_scope(ref, "register")
    s.compute_at(copy, block)
    s.compute_at(sums, block)
    around = [f.var for f in s.loops(copy)].index(block.var) + 1
    moving = own_loops(s, copy, around)
    copied = [i for i in inputs_of(block_of(s, copy))[0].indices if isinstance(i, Var)]
    made = dict(zip([r.begin for r in block_of(s, sums).writes[0].ranges], copied, strict=True))
    group, row, column = [moving[made[a.var]] for a in (spatial_axes(block_of(s, sums))[0], own.row, own.column)]
    rows = s.split(row, [None, *tile.row_parts[1:]])
    columns = s.split(column, [None, *tile.column_parts[1:]])
    (_, y, x), results = _threads_and_results(rows, columns)
    s.reorder([group, y, x, *results])
    if tile.run > 1:
        s.vectorize(results[-1])
    _lay_out_sums(s, copy, [n for n, r in enumerate(made) if r in (own.row.var, own.column.var)], tile)
    _sum_up(s, sums, own, tile, around)
    _bind(s, [group, y, x], (tile.groups, tile.y, tile.x))


def _sum_up(s: Schedule, ref: BlockRef, axes: TileAxes, tile: SharedTile, around: int) -> None:
    """Schedules the accumulators of a block's threads, which stay in registers."""
    _lay_out(s, ref, axes, tile)
    start, threads = _multiply(s, ref, axes, tile, around)
    for of in (threads, list(s.loops(start))[around:]):
        _bind(s, of, (tile.layers, tile.y, tile.x))
    s.set_scope(ref, "register")


def _bind(s: Schedule, loops: Sequence[LoopRef], sizes: Sequence[int]) -> None:
    """Binds loops to the axes of threads of which there are several; loops of one iteration may have been left out."""
    bound = [axis for axis, n in zip(("threadIdx.z", "threadIdx.y", "threadIdx.x"), sizes, strict=True) if n > 1]
    for axis, loop in zip(bound, [f for f in loops if s.extent(f) != 1], strict=False):
        s.bind(loop, axis)


def _threads_and_results(rows: Sequence[LoopRef], columns: Sequence[LoopRef]) -> tuple[list[LoopRef], list[LoopRef]]:
    """Returns the loops over threads, and those over a thread's results, from the parts of rows and columns of a tile."""
    high, y, low = rows
    wide, z, x, near = columns
    return [z, y, x], [high, low, wide, near]


def _multiply(
    s: Schedule, ref: BlockRef, axes: TileAxes, tile: SharedTile, around: int
) -> tuple[BlockRef, list[LoopRef]]:
    """Schedules the products and the fetches before them; returns the block of zeros, and the products' loops over threads."""
    inner = own_loops(s, ref, around)
    own = {k: inner.pop(k.var) for k in (axes.row, axes.column, axes.depth)}
    group = [inner.pop(a.var) for a in spatial_axes(block_of(s, ref))[:1] if tile.groups > 1]
    rows = s.split(own[axes.row], [None, *tile.row_parts[1:]])
    columns = s.split(own[axes.column], [None, *tile.column_parts[1:]])
    threads, results = _threads_and_results(rows, columns)
    outer, step = s.split(own[axes.depth], [None, min(tile.depth, s.extent(own[axes.depth]) or tile.depth)])
    fetching = [outer, *inner.values()]
    threads = [*group, *threads[tile.groups > 1 :]]
    s.reorder([*fetching, *threads, step, *results])
    copies = [s.cache_read(ref, name, "shared") for name in axes.factors]
    across = []
    for copy in copies:
        s.compute_at(copy, fetching[-1])
        across.append(lay_out_part(s, ref, copy, axes, tile))
    start = s.decompose_reduction(ref, outer)
    for copy, is_across in zip(copies, across, strict=True):
        fetch_together(s, copy, around + len(fetching), tile, across=is_across)
        if tile.copies > 1:
            s.fetch_ahead(copy, fetching[-1], tile.copies, tile.copies - 1)
    if tile.run > 1:
        s.vectorize(results[-1])
    if tile.unroll:
        s.unroll(step)
    return start, threads


def _lay_out_sums(s: Schedule, copy: BlockRef, places: list[int], tile: SharedTile) -> None:
    """Lays the partial sums out by group and row, with rows padded against bank conflicts of threads along y."""
    written = block_of(s, copy).writes[0]
    names = [f"x{n}" for n in range(len(written.ranges))]
    group, r, c = names[0], *[names[n] for n in places]
    to = [n for n in names if n not in (group, r, c)]
    to += [f"{r} // {tile.high}", f"{c} // {tile.wide}", group, f"{r} % {tile.high}", f"{c} % {tile.wide}"]
    s.transform_layout(copy, written.buffer.name, f"{', '.join(names)} -> {', '.join(to)}")
    s.storage_align(copy, len(to) - 2, BANKS, tile.x)


def _lay_out(s: Schedule, ref: BlockRef, axes: TileAxes, tile: SharedTile) -> None:
    """Lays the accumulators out by thread, so that those of a thread are contiguous once they are its private memory."""
    block = block_of(s, ref)
    written = block.writes[0]
    names = [f"x{n}" for n in range(len(written.ranges))]
    place = {r.begin: n for n, r in enumerate(written.ranges)}
    r, c = names[place[axes.row.var]], names[place[axes.column.var]]
    run, x = tile.run, tile.x
    y = f"{r} // {run} % {tile.y}" if run > 1 else f"{r} % {tile.y}"
    to = [n for n in names if n not in (r, c)]
    if tile.across > 1:
        to.append(f"{c} // {run * x} % {tile.across}")
    to += [y, f"{c} // {run} % {x}" if run > 1 else f"{c} % {x}"]
    to += [f"{r} // {run * tile.y}", *([f"{r} % {run}"] if run > 1 else [])]
    to += [f"{c} // {run * x * tile.across}", *([f"{c} % {run}"] if run > 1 else [])]
    s.transform_layout(ref, written.buffer.name, f"{', '.join(names)} -> {', '.join(to)}")
