"""Contractions on tensor cores, and by simdgroups: the threads of each warp multiply fragments of matrices together.

    for i, j, r: C[i, j] += f32(A[i, r]) * f32(B[r, j])

    for bi, bj in blocks:
        for w, g, t in threads: c[2, 8, 2, 2] = 0                       # warps, and the threads of each
        for ko in range(0, k // 32):
            for w, g, t in threads: A_shared[...] = A[...]; B_shared[...] = B[...]
            for w, g, t in threads:
                for step, m, n: c[m, n] += an instruction of the warp
        for w, g, t in threads: D[...] = f(c[...])

The tiles are whole: rows, columns and terms are multiples of those of fragments. All else is as in `shared_tiles`.
"""

from __future__ import annotations

from collections.abc import Sequence

from weft.cost import (
    FragmentProduct,
    FragmentTile,
    Planner,
    elements,
    fragment_tile_plans,
    multiplies_together,
    size_of,
)
from weft.ir import Const, Var
from weft.schedule.cursors.state import BlockRef, LoopRef
from weft.schedule.rules.block_facts import block_of, inputs_of, reduce_axes, spatial_axes
from weft.schedule.rules.grid.filled_axes import fill_up
from weft.schedule.rules.grid.partial_sums import split_k
from weft.schedule.rules.grid.patch_parts import by_places, is_formula, selects
from weft.schedule.rules.grid.swizzled_parts import lay_out_swizzled
from weft.schedule.rules.grid.thread_reduction import epilogue_of, reader_of
from weft.schedule.rules.grid.tile_axes import TileAxes, counts_terms, own_loops, reader_loops, tile_axes
from weft.schedule.rules.grid.trying import Trials
from weft.schedule.schedule import Schedule
from weft.support.dtypes import DType, bf16, f32
from weft.support.errors import ScheduleError
from weft.targets.instructions import COPY_BYTES, FRAGMENT, FRAGMENT_INSTRUCTIONS, GROUP_INSTRUCTIONS, sums_of, terms_of

AXES = ("threadIdx.z", "threadIdx.y", "threadIdx.x")
"""The thread axes: warps, and the groups and quads of a warp's threads."""


def schedule_fragment_tiles(s: Schedule, ref: BlockRef, p: Planner, threads: int) -> bool:
    """Computes a contraction on tensor cores, if that pays; tells whether it did. Blocks of *threads* add partial sums."""
    axes, factors = tile_axes(s, ref), _factors(s, ref)
    if axes is None or factors is None or not p.offers(FragmentTile, lambda m: multiplies_together(factors, m)):
        return False
    sizes = [a.extent for a in (axes.row, axes.column, axes.depth)]
    if not all(isinstance(n, Const) for n in sizes):
        return False
    block = block_of(s, ref)
    trials = Trials[FragmentTile](s, p, lambda trial, tile: _take(trial, ref, axes, tile, threads))

    def is_legal(tile: FragmentTile) -> bool:  # the block may be no product, or its consumer have other axes
        return tile.warps == 0 or trials.can_take(tile)

    rows, columns, depth = [size_of(n) for n in sizes]
    batch, terms = elements(spatial_axes(block)) // (rows * columns), elements(reduce_axes(block))
    patches = any(selects(s, x.buffer) for x in inputs_of(block))
    product = FragmentProduct(rows, columns, batch, depth, terms, factors, _result_bytes(s, ref), patches)
    tile = p.decide(ref.name, FragmentTile, lambda m: fragment_tile_plans(product, m), is_legal)
    if tile.warps:
        trials.carry_out(tile)
    return tile.warps > 0


def _take(s: Schedule, ref: BlockRef, axes: TileAxes, tile: FragmentTile, threads: int) -> None:
    """Applies a tile; a kernel that adds partial sums has blocks of *threads* threads."""
    factors = inputs_of(block_of(s, ref))[0].buffer.dtype
    if tile.filled:
        axes = fill_up(s, ref, {axes.column.var: _extents(tile, factors)[1]})
    split_k(s, ref, axes, tile.parts, threads, lambda sums, own: _tile(s, sums, own, tile, factors))


def _factors(s: Schedule, ref: BlockRef) -> DType | None:
    """Returns the data type of a block's factors; None if no instruction multiplies it."""
    block = block_of(s, ref)
    types = {x.buffer.dtype for x in inputs_of(block)}
    if len(types) != 1 or len(block.writes) != 1:
        return None
    (dtype,) = types
    is_known = dtype in FRAGMENT_INSTRUCTIONS or dtype in GROUP_INSTRUCTIONS
    return dtype if is_known and block.writes[0].buffer.dtype is sums_of(dtype) else None


def _result_bytes(s: Schedule, ref: BlockRef) -> int:
    """Returns the bytes of a result as it is stored: by the epilogue, if there is one."""
    return block_of(s, epilogue_of(s, ref) or ref).writes[0].buffer.dtype.bytes


def _tile(s: Schedule, ref: BlockRef, axes: TileAxes, tile: FragmentTile, factors: DType) -> None:
    reader = reader_of(s, ref)
    row, column, others = reader_loops(s, ref, reader, axes)
    last = _stage(s, reader, (row, column, others), tile) if tile.staged else None
    if last is not None:
        row, column = list(s.loops(reader))[-2:]
        rows = list(s.split(row, [None, *_row_parts(tile)[1:]]))
        columns = list(s.split(column, [None, *_column_parts(tile)[1:]]))
        threads, own = _parts(rows, columns)
        s.reorder([*threads, *own])
        around = len(s.loops(reader)) - len(threads) - len(own) - 1
    else:
        block_row, *rows = s.split(row, [None, *_row_parts(tile)])
        block_column, *columns = s.split(column, [None, *_column_parts(tile)])
        threads, own = _parts(rows, columns)
        s.reorder([*others, block_row, block_column, *threads, *own])
        last = _bind_blocks(s, others, block_row, block_column, tile.groups)
        around = len(s.loops(reader)) - len(threads) - len(own)
    s.compute_at(ref, last)
    _lay_out(s, ref, axes)
    _, start = _multiply(s, ref, axes, tile, around, factors)
    _bind(s, threads)
    first = list(s.loops(start))[around:]
    s.vectorize(own[-1])
    _bind(s, first if tile.warps > 1 else [None, *first])  # a loop of one iteration has no copy that sets sums to zero


def _stage(
    s: Schedule, reader: BlockRef, loops: tuple[LoopRef, LoopRef, Sequence[LoopRef]], tile: FragmentTile
) -> LoopRef:
    """Stages results through shared memory, part by part of the columns; returns the innermost loop over blocks."""
    names = [f.var for f in s.loops(reader)]
    copy = s.cache_write(reader, "shared")
    made = list(s.loops(copy))
    row, column = [made[names.index(f.var)] for f in loops[:2]]
    others = [f for f in made if f not in (row, column)]
    high, wide, _ = _extents(tile, bf16)
    block_row, own_row = s.split(row, [None, high])
    block_column, part, own_column = s.split(column, [None, tile.staged, wide // tile.staged])
    s.reorder([*others, block_row, block_column, part, own_row, own_column])
    last = _bind_blocks(s, others, block_row, block_column, tile.groups)
    s.compute_at(reader, part)
    _lay_out_results(s, reader, [names.index(f.var) for f in loops[:2]], (high, wide // tile.staged))
    _fetch(s, copy, len(s.loops(copy)) - 2, tile)
    s.unroll(part)
    return last


def _lay_out_results(s: Schedule, reader: BlockRef, places: Sequence[int], sizes: tuple[int, int]) -> None:
    """Pads a part of the results in shared memory against bank conflicts, of fragment stores and of vector loads."""
    written = block_of(s, reader).writes[0].buffer
    names = [f"x{n}" for n in range(written.rank)]
    r, c = [names[n] for n in places]
    f, (high, wide) = FRAGMENT, sizes
    others = [x for x in names if x not in (r, c)]
    to = [*others, f"{r} // {high}", f"{c} // {wide}", f"{r} % {high} // {f.rows}"]
    to += [f"{r} % {f.halves}", f"{r} // {f.halves} % {f.groups}", f"{c} % {wide}"]
    s.transform_layout(reader, written.name, f"{', '.join(names)} -> {', '.join(to)}")
    lanes = max(COPY_BYTES) // written.dtype.bytes
    s.storage_align(reader, len(to) - 2, 8 * lanes, lanes)


def _bind_blocks(s: Schedule, others: Sequence[LoopRef], row: LoopRef, column: LoopRef, groups: int) -> LoopRef:
    """Binds loops to the axes of blocks, of which x moves fastest; returns the innermost."""
    if groups == 1:
        outer, slow, fast = list(others), row, column
    else:
        group, fast = s.split(row, [None, groups])
        outer, slow = [*others, group], column
        s.reorder([slow, fast])
    if outer:
        s.bind(s.fuse(outer) if len(outer) > 1 else outer[0], "blockIdx.z")
    s.bind(slow, "blockIdx.y")
    s.bind(fast, "blockIdx.x")
    return fast


def _row_parts(tile: FragmentTile) -> list[int]:
    return [tile.warps, tile.rows, FRAGMENT.groups, FRAGMENT.halves]


def _column_parts(tile: FragmentTile) -> list[int]:
    return [tile.columns, FRAGMENT.quads, FRAGMENT.pairs]


def _parts(rows: Sequence[LoopRef], columns: Sequence[LoopRef]) -> tuple[list[LoopRef], list[LoopRef]]:
    """Returns the loops over threads, and over the accumulators of a thread: fragments, then registers of a fragment."""
    warp, high, group, half = rows
    wide, quad, pair = columns
    return [warp, group, quad], [high, wide, half, pair]


def _bind(s: Schedule, loops: Sequence[LoopRef | None]) -> None:
    """Binds the first loops to the thread axes, skipping loops that do not exist."""
    for loop, axis in zip(loops, AXES, strict=False):
        if loop is not None:
            s.bind(loop, axis)


def _lay_out(s: Schedule, ref: BlockRef, axes: TileAxes) -> None:
    """Lays accumulators out by thread and register, so that those of a thread are contiguous once they are its private memory."""
    written = block_of(s, ref).writes[0]
    names = [f"x{n}" for n in range(len(written.ranges))]
    place = {r.begin: n for n, r in enumerate(written.ranges)}
    r, c = names[place[axes.row.var]], names[place[axes.column.var]]
    f = FRAGMENT
    parts = [
        f"{r} // {f.rows}",
        f"{c} // {f.columns}",
        f"{r} // {f.halves} % {f.groups}",
        f"{c} // {f.pairs} % {f.quads}",
    ]
    registers = [f"{r} % {f.halves}", f"{c} % {f.pairs}"]
    to = [*[n for n in names if n not in (r, c)], *parts, *registers]
    s.transform_layout(ref, written.buffer.name, f"{', '.join(names)} -> {', '.join(to)}")


def _multiply(
    s: Schedule, ref: BlockRef, axes: TileAxes, tile: FragmentTile, around: int, factors: DType
) -> tuple[BlockRef, BlockRef]:
    """Schedules the products and the fetches before them; returns the products, and the block that zeroes the accumulators."""
    inner = own_loops(s, ref, around)
    own_row, own_column, depth = [inner.pop(a.var) for a in (axes.row, axes.column, axes.depth)]
    threads, own = _parts(
        s.split(own_row, [None, *_row_parts(tile)[1:]]), s.split(own_column, [None, *_column_parts(tile)[1:]])
    )
    outer, step, term = s.split(depth, [None, tile.steps, terms_of(factors)])
    fetching = [outer, *inner.values()]
    s.reorder([*fetching, *threads, step, *own, term])
    is_ahead = tile.copies > 1
    copies = [s.cache_read(ref, name, "swizzled" if is_ahead else "shared") for name in axes.factors]
    for copy in copies:
        s.compute_at(copy, fetching[-1])
        (lay_out_swizzled if is_ahead else _lay_out_part)(s, ref, copy, axes, _extents(tile, factors))
    start = s.decompose_reduction(ref, outer)
    patches = any(is_formula(s, copy) for copy in copies)
    for copy in copies:
        _fetch(s, copy, around + len(fetching), tile, FRAGMENT.quads if patches and tile.copies == 1 else None)
        if is_ahead:
            s.fetch_ahead(copy, fetching[-1], tile.copies, tile.ahead)
    _bind(s, threads)
    s.set_scope(ref, "register")
    for loop in (step, *own[:2]):
        s.unroll(loop)
    instructions = GROUP_INSTRUCTIONS if is_ahead else FRAGMENT_INSTRUCTIONS
    return s.tensorize(own[2], instructions[factors]), start


def _lay_out_part(s: Schedule, ref: BlockRef, copy: BlockRef, axes: TileAxes, sizes: tuple[int, int, int]) -> None:
    """Lays out the shared-memory copy of a factor by parts of a tile, with rows padded against bank conflicts."""
    written = block_of(s, copy).writes[0].buffer
    place = dict(zip([a.var for a in (axes.row, axes.column, axes.depth)], sizes, strict=True))
    read = next(x for x in inputs_of(block_of(s, ref)) if x.buffer is written).indices
    names = [f"x{n}" for n in range(len(read))]
    along = [axes.depth.var if counts_terms(i, axes.depth.var, sizes[2]) else i for i in read]
    parts = [(x, i) for x, i in zip(names, along, strict=True) if isinstance(i, Var) and i in place]
    if is_formula(s, copy):
        parts.reverse()  # rows of terms
    if len(parts) != len(("rows", "terms")):
        raise ScheduleError(f"the parts of {written.name} are no matrices")
    others = [x for x in names if x not in dict(parts)]
    to = [*others, *[f"{x} // {place[i]}" for x, i in parts], *[f"{x} % {place[i]}" for x, i in parts]]
    s.transform_layout(copy, written.name, f"{', '.join(names)} -> {', '.join(to)}")
    # a thread reads two terms of tf32 of one column, where they are words: rows of 8 threads then begin 8 banks apart
    of_words = written.dtype.bytes == f32.bytes and parts[0][1] is axes.column.var
    s.storage_align(copy, len(to) - 2, FRAGMENT.depth, FRAGMENT.groups if of_words else FRAGMENT.quads)


def _extents(tile: FragmentTile, factors: DType) -> tuple[int, int, int]:
    """Returns the rows, the columns and the terms of the parts of a tile."""
    f = FRAGMENT
    return tile.warps * tile.rows * f.rows, tile.columns * f.columns, tile.steps * terms_of(factors)


def _fetch(s: Schedule, copy: BlockRef, around: int, tile: FragmentTile, vector: int | None = None) -> None:
    """Distributes the elements of a copy, in vectors of so many, over the threads of a block, so that accesses coalesce."""
    loops = list(s.loops(copy))[around:]
    if not loops:
        raise ScheduleError(f"{copy.name} has no loop to share")
    if vector is None and tile.copies > 1:
        vector = max(COPY_BYTES) // block_of(s, copy).writes[0].buffer.dtype.bytes
    threads = [None, tile.warps, FRAGMENT.groups, FRAGMENT.quads]
    if is_formula(s, copy):
        *loops, lane = by_places(s, copy, loops, vector or 1)
        parts = [*s.split(s.fuse(loops), threads), lane]
    else:
        whole = s.fuse(loops) if len(loops) > 1 else loops[0]
        parts = list(s.split(whole, [*threads, *([vector] if vector else [])]))
    _bind(s, parts[1:4])
    if len(parts) > len(threads):
        s.unroll(parts[0])
        s.vectorize(parts[4])
