"""Contractions in tiles: a block of threads fetches parts of both factors into shared memory, each thread keeps its results.

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

from dataclasses import dataclass
from math import prod

from weft.cost import (
    BANKS,
    LONG_ENOUGH,
    NO_TILE,
    WORD,
    PartExtent,
    Planner,
    SharedTile,
    TiledProduct,
    elements,
    shared_tile_plans,
    size_of,
)
from weft.ir import Expr, RangesOrZero, Var, free_vars
from weft.loop import Axis, Block, Program
from weft.schedule.cursors.state import BlockRef, LoopRef
from weft.schedule.legality.trust import proving
from weft.schedule.rules.block_facts import (
    Contraction,
    block_of,
    contraction_of,
    inputs_of,
    reduce_axes,
    spatial_axes,
    uses_axis,
)
from weft.schedule.rules.grid.thread_reduction import reader_of
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
    """Tells whether the right factor is in groups of terms that dot products take, not just with its terms side by side."""
    return found.group is not None and size_of(found.group.extent) == group_of(found.left.buffer.dtype)


def _used(axes: list[Axis], *, left: bool, right: bool, of: Contraction) -> list[Axis]:
    """Returns those of *axes* that the factors are read along as told, and that have more than one element."""
    read = [a for a in axes if (uses_axis(of.left, a.var), uses_axis(of.right, a.var)) == (left, right)]
    return [a for a in read if size_of(a.extent) > 1]


def _longest(axes: list[Axis]) -> Axis:
    """Returns the last axis that is long enough for a tile, along which memory is read in order; the longest, if none is."""
    return max(reversed(axes), key=lambda a: min(size_of(a.extent), LONG_ENOUGH))


def schedule_shared_tiles(s: Schedule, ref: BlockRef, p: Planner) -> bool:
    """Tiles a contraction, if that pays; tells whether it did."""
    axes = tile_axes(s, ref)
    if axes is None:
        return False
    program, block = s.program, block_of(s, ref)

    def is_legal(tile: SharedTile) -> bool:
        return tile == NO_TILE or _can_tile(program, ref, axes, tile)

    rows, columns = size_of(axes.row.extent), size_of(axes.column.extent)
    batch, terms = elements(spatial_axes(block)) // max(1, rows * columns), elements(reduce_axes(block))
    product = TiledProduct(rows, columns, batch, terms, size_of(axes.depth.extent), _parts(block, axes))
    tile = p.decide(ref.name, SharedTile, lambda m: shared_tile_plans(product, m), is_legal)
    if tile == NO_TILE:
        return False
    _tile(s, ref, axes, tile)
    return True


def _parts(block: Block, axes: TileAxes) -> tuple[tuple[tuple[PartExtent, ...], int], ...]:
    """Returns what a block of threads fetches of each factor: all that other reduced axes, such as those of a window, reach."""
    tiled = (axes.row, axes.column, axes.depth)
    reach = {a.var: (0, size_of(a.extent) - 1) for a in reduce_axes(block) if a not in tiled}

    def extent(e: Expr) -> PartExtent:
        rest = RangesOrZero({}).ends_of(e)[1]
        row, column, step = [abs(RangesOrZero({a.var: (0, 1)}).ends_of(e)[1] - rest) for a in tiled]
        low, high = RangesOrZero(reach).ends_of(e)
        return PartExtent(1 + high - low, row, column, step)

    return tuple([(tuple([extent(i) for i in x.indices]), x.buffer.dtype.bytes) for x in inputs_of(block)])


def _can_tile(program: Program, ref: BlockRef, axes: TileAxes, tile: SharedTile) -> bool:
    """Tells whether a tile is legal: its reader may go along other axes, or bounds may be beyond what can be proved."""
    try:
        with proving():
            _tile(Schedule(program), ref, axes, tile)
    except ScheduleError:
        return False
    return True


def _tile(s: Schedule, ref: BlockRef, axes: TileAxes, tile: SharedTile) -> None:
    if tile.y * tile.rows == 1 or tile.x * tile.columns == 1:
        raise ScheduleError("a tile has several rows, and several columns")
    reader = reader_of(s, ref)
    row, column, others = reader_loops(s, ref, reader, axes)
    block_row, own_row, thread_row = s.split(row, [None, tile.rows, tile.y])
    block_column, own_column, thread_column = s.split(column, [None, tile.columns, tile.x])
    s.reorder([*others, block_row, block_column, thread_row, thread_column, own_row, own_column])
    if others:
        s.bind(s.fuse(others) if len(others) > 1 else others[0], "blockIdx.z")
    s.bind(block_row, "blockIdx.y")
    s.bind(block_column, "blockIdx.x")
    around = len(s.loops(reader)) - 4
    s.compute_at(ref, block_column)
    _lay_out(s, ref, axes, tile)
    inner = own_loops(s, ref, around)
    own = {k: inner.pop(k.var) for k in (axes.row, axes.column, axes.depth)}
    row_own, row_y = s.split(own[axes.row], [None, tile.y])
    column_own, column_x = s.split(own[axes.column], [None, tile.x])
    outer, step = s.split(own[axes.depth], [None, min(tile.depth, s.extent(own[axes.depth]) or tile.depth)])
    order = [outer, *inner.values(), row_y, column_x, step, row_own, column_own]
    s.reorder(order)
    fetch = order[len(inner)]
    copies = [s.cache_read(ref, name, "shared") for name in axes.factors]
    for copy in copies:
        s.compute_at(copy, fetch)
        _lay_out_part(s, ref, copy, axes, tile)
    start = s.decompose_reduction(ref, outer)
    depth = around + 1 + len(inner)
    for copy in copies:
        _fetch_together(s, copy, depth, tile)
    threads = [axis for axis, n in (("threadIdx.y", tile.y), ("threadIdx.x", tile.x)) if n > 1]
    first = list(s.loops(start))[around:]  # loops of one iteration are left out of them
    for of in ((row_y, column_x), first, (thread_row, thread_column)):
        for axis, loop in zip(threads, [f for f in of if s.extent(f) != 1], strict=False):
            s.bind(loop, axis)
    s.set_scope(ref, "register")
    if tile.unroll:
        s.unroll(step)


def _lay_out(s: Schedule, ref: BlockRef, axes: TileAxes, tile: SharedTile) -> None:
    """Lays the sums out by thread, so that each one's are side by side once they are its own memory."""
    written = block_of(s, ref).writes[0]
    names = [f"x{n}" for n in range(len(written.ranges))]
    place = {r.begin: n for n, r in enumerate(written.ranges)}
    r, c = names[place[axes.row.var]], names[place[axes.column.var]]
    to = [n for n in names if n not in (r, c)]
    to += [f"{r} % {tile.y}", f"{c} % {tile.x}", f"{r} // {tile.y}", f"{c} // {tile.x}"]
    s.transform_layout(ref, written.buffer.name, f"{', '.join(names)} -> {', '.join(to)}")


def _lay_out_part(s: Schedule, ref: BlockRef, copy: BlockRef, axes: TileAxes, tile: SharedTile) -> None:
    """Lays a copy out by steps, then by rows or columns, which threads read side by side.

    Where it is fetched along the steps, threads write it across: rows of such a stride begin in different banks.
    """
    written = block_of(s, copy).writes[0].buffer
    read = next(x for x in inputs_of(block_of(s, ref)) if x.buffer is written).indices
    sizes = {axes.row.var: tile.y * tile.rows, axes.column.var: tile.x * tile.columns}
    side = [(n, sizes[i]) for n, i in enumerate(read) if isinstance(i, Var) and i in sizes]
    steps = [n for n, i in enumerate(read) if i is axes.depth.var]
    if len(side) != 1 or len(steps) != 1:  # a part of an image, whose rows are windows into longer ones
        return
    names = [f"x{n}" for n in range(len(read))]
    (place, width) = side[0]
    x, k = names[place], names[steps[0]]
    to = [n for n in names if n not in (x, k)]
    to += [f"{x} // {width}", f"{k} // {tile.depth}", f"{k} % {tile.depth}", f"{x} % {width}"]
    s.transform_layout(copy, written.name, f"{', '.join(names)} -> {', '.join(to)}")
    if steps[0] > place:
        turn = max(1, BANKS // tile.depth)
        s.storage_align(copy, len(to) - 2, 2 * turn, turn)


def reader_loops(
    s: Schedule, ref: BlockRef, reader: BlockRef, axes: TileAxes
) -> tuple[LoopRef, LoopRef, list[LoopRef]]:
    """Returns the loops of the reader over the tile's rows, over its columns, and the others."""
    block, user = block_of(s, ref), block_of(s, reader)
    written = block.writes[0]
    read = next(x for x in inputs_of(user) if x.buffer is written.buffer)
    place = {r.begin: n for n, r in enumerate(written.ranges)}
    bound = {a.var: b for a, b in zip(user.axes, user.bindings, strict=True)}
    found = []
    for axis in (axes.row, axes.column):
        index = read.indices[place[axis.var]]
        loop = bound.get(index) if isinstance(index, Var) else None
        if not isinstance(loop, Var):
            raise ScheduleError(f"{reader.name} does not go along {axis.var.name}")
        found.append(loop)
    loops = list(s.loops(reader))
    row, column = (next(f for f in loops if f.var is v) for v in found)
    return row, column, [f for f in loops if f.var not in found]


def own_loops(s: Schedule, ref: BlockRef, around: int) -> dict[Var, LoopRef]:
    """Returns the loops of *ref* inside of the first *around*, by the axis that they move; the outermost, where several do."""
    block, loops = block_of(s, ref), list(s.loops(ref))[around:]
    found: dict[Var, LoopRef] = {}
    for a, b in zip(block.axes, block.bindings, strict=True):
        moving = [f for f in loops if f.var in free_vars(b)]
        if moving:
            found[a.var] = moving[0]
    return found


def _fetch_together(s: Schedule, copy: BlockRef, around: int, tile: SharedTile) -> None:
    """Shares the elements of a copy among the threads of a block, neighbours to neighbours.

    Where rows of the copy are not whole rows of threads, each has threads of its own: divisions would hide which are in bounds.
    """
    loops = list(s.loops(copy))[around:]
    last = s.extent(loops[-1]) or 1
    if tile.lanes > 1 and _fetch_vectors(s, copy, loops, tile):
        return
    if len(loops) == 1 or (tile.y * tile.x) % last == 0 or last % (tile.y * tile.x) == 0:
        whole = s.fuse(loops) if len(loops) > 1 else loops[0]
        _, y, x = s.split(whole, [None, _rows_of_threads(s.extent(whole), tile), tile.x])
    else:
        _, y = s.split(loops[-2], [None, tile.y])
        _, x = s.split(loops[-1], [None, tile.x])
    s.bind(y, "threadIdx.y")
    s.bind(x, "threadIdx.x")


def _fetch_vectors(s: Schedule, copy: BlockRef, loops: list[LoopRef], tile: SharedTile) -> bool:
    """Lets threads fetch vectors of a copy; tells whether its rows are whole ones of words, and are shared evenly."""
    words = s.extent(loops[-1]) or 0
    whole = prod([s.extent(f) or 0 for f in loops])
    is_word = block_of(s, copy).writes[0].buffer.dtype.bits == WORD
    if not is_word or whole == 0 or words % tile.lanes or whole % (tile.x * tile.lanes):
        return False
    fused = s.fuse(loops) if len(loops) > 1 else loops[0]
    _, y, x, lane = s.split(fused, [None, _rows_of_threads(whole // tile.lanes, tile), tile.x, tile.lanes])
    s.bind(y, "threadIdx.y")
    s.bind(x, "threadIdx.x")
    s.vectorize(lane)
    return True


def _rows_of_threads(elements: int | None, tile: SharedTile) -> int:
    """Returns how many rows of threads fetch so many elements: no more than there are whole rows, which need no condition."""
    if elements is None or elements % tile.x != 0:
        return tile.y
    return min(tile.y, elements // tile.x)
