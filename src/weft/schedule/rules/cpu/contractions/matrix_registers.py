"""The rule for products in matrix registers (AMX): sums stay in tiles during the whole reduction.

    for panel in ...:
        for m in blocks of rows:
            sums = 0                                          2 x 2 tiles of 16 x 16 sums
            for k in range(0, K / 32):
                for i, j in 2 x 2: sums[i, j] += A[m, i, k] * B[panel, k, j]      an instruction each
            stored = sums
            epilogue of the block, in vectors

Whole tiles of results that have no epilogue are stored where they belong.

B is packed in groups of neighbouring terms, as for dot products; a row of A has 64 bytes of them side by side, of a row of a
matrix or of the channels of a place. So a convolution is computed as it lies: places of a row of its result are the rows of A.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import prod

from weft.cost import MatrixTile, MatrixTileProblem, Planner, elements, matrix_tile_plans, size_of, step_along
from weft.ir import Const, Expr, Select, Var, free_vars, linear_terms, mentions, post_order
from weft.loop import Axis, AxisKind, Block, Load, Store
from weft.schedule.cursors.state import BlockRef, LoopRef
from weft.schedule.legality.placement import readers
from weft.schedule.rules.block_facts import (
    block_of,
    contraction_of,
    inputs_of,
    loops_of,
    loops_over,
    reduce_axes,
    spatial_axes,
)
from weft.schedule.rules.cpu.contractions.contraction import loops_of_axis, split_parts
from weft.schedule.rules.cpu.contractions.tile_roles import Part, Roles, parts_of, roles_of
from weft.schedule.rules.cpu.epilogue import epilogue_block
from weft.schedule.rules.cpu.parallel import parallelize
from weft.schedule.schedule import Schedule
from weft.targets import TILE
from weft.targets.instructions import GROUPS, TILE_LANES, TileOperation


def matrix_tile(ref: BlockRef, block: Block, p: Planner) -> MatrixTile:
    """Returns the tiles to compute *block* by, without rows where it is to be computed in vectors."""
    problem = _problem(block)
    return MatrixTile() if problem is None else p.decide(ref.name, MatrixTile, lambda m: matrix_tile_plans(problem, m))


def schedule_matrix_tiles(s: Schedule, ref: BlockRef, p: Planner, tile: MatrixTile) -> set[BlockRef]:
    """Schedules a product with its epilogue block in matrix registers; returns the blocks that are now placed."""
    is_filled = _fill_up(s, ref, tile)
    finish, loops = epilogue_block(s, ref)
    block, around = block_of(s, ref), len(s.loops(finish)) - len(loops)
    parts, own = split_parts(s, block, loops)
    roles = roles_of(block, parts[:-1])
    product = _product(block, tile)
    lined = roles.outer_row if tile.lines > 1 else None
    places = [n for n in (roles.row, lined, roles.column, len(parts) - 1) if n is not None]
    stored = finish if _is_copy(s, finish, ref, roles) else s.cache_write(ref, TILE.name)
    outer, inner, rows = _split_in_blocks(s, own, roles, tile)
    outer = outer or [s.add_unit_loop(finish)]  # all results are one block
    s.reorder([*outer, *inner])
    moving = [ref] if stored == finish else [stored, ref]
    for moved in moving:
        s.compute_at(moved, outer[-1], align=TILE_LANES, guarded=not is_filled)
    s.set_scope(moving[0], TILE.name if stored == finish else "local")
    for moved in reversed(moving):
        written = block_of(s, moved).writes[0].buffer
        s.transform_layout(moved, written.name, _tile_major(len(parts), roles.row, tile.rows, TILE_LANES))
    depth = around + len(outer)
    _schedule_products(s, ref, depth, places, tile, product)
    if stored == finish:
        _schedule_stores(s, stored, [[rows], [f for f in inner[:-1] if f != rows], [inner[-1]]], tile, product)
    else:
        _schedule_stores(s, stored, _loops_at(s, stored, depth, places), tile, product)
        # loops over whole tiles read elements side by side
        for loop, size in ((rows, tile.rows), (inner[-1], TILE_LANES)):
            last = loop if s.extent(loop) == size else s.split(loop, [None, size])[1]
        s.vectorize(last)
    parallelize(s, ref, outer, p)
    return {ref, stored, finish}


def _fill_up(s: Schedule, ref: BlockRef, tile: MatrixTile) -> bool:
    """Fills the rows of a product up with zeros to whole tiles, if they are not; what follows reads the rows that there were."""
    block = block_of(s, ref)
    row = roles_of(block, [Part(a, a.extent) for a in spatial_axes(block)[:-1]]).row
    height, axes = tile.rows * tile.row_tiles, spatial_axes(block)
    if row is None or (isinstance(axes[row].extent, Const) and size_of(axes[row].extent) % height == 0):
        return False
    *_, back = s.pad_einsum(ref, [height if a is axes[row] else 1 for a in block.axes])
    if readers(s.function, block_of(s, back)):
        s.compute_inline(back)
    return True


def _is_copy(s: Schedule, finish: BlockRef, ref: BlockRef, roles: Roles) -> bool:
    """Tells whether the epilogue stores whole tiles of the results of *ref* as they are, rows of lanes side by side."""
    block, result = block_of(s, finish), block_of(s, ref).writes[0].buffer
    store, whole = block.body, elements(spatial_axes(block_of(s, ref)))
    if not isinstance(store, Store) or store.mask is not None or not isinstance(store.value, Load):
        return False
    read = store.value
    if read.buffer is not result or roles.row is None or prod([size_of(a.extent) for a in block.axes]) != whole:
        return False
    row, lane = read.indices[roles.row], free_vars(read.indices[-1])
    is_plain = isinstance(row, Var) and row in store.indices and len(lane) == 1 and lane[0] is store.indices[-1]
    return is_plain and all(isinstance(n, Const) for n in store.buffer.shape)


def _problem(block: Block) -> MatrixTileProblem | None:
    """Returns the sizes of a product that tiles may compute; None for any other block, and where columns are not known."""
    found, parts = contraction_of(block), [Part(a, a.extent) for a in spatial_axes(block)]
    if found is None or found.group is None or any(len(parts_of(a, block)) > 1 for a in spatial_axes(block)):
        return None
    roles, inner = roles_of(block, parts[:-1]), _inner_axis(block)
    if (
        roles.row is None
        or inner is None
        or not all(isinstance(x.extent, Const) for x in parts if x != parts[roles.row])
    ):
        return None
    columns = 1 if roles.column is None else parts[roles.column].size
    width = parts[-1].size
    rows = parts[roles.row].size
    return MatrixTileProblem(
        a=found.left.buffer.dtype,
        b=found.right.buffer.dtype,
        sums=block.writes[0].buffer.dtype,
        rows=rows,
        lines=_known_lines(roles, parts),
        columns=columns,
        width=width,
        groups=elements(reduce_axes(block)) // size_of(found.group.extent),
        inner=size_of(inner.extent),
        left_stride=_row_stride(found.left, parts[roles.row].axis.var),
        panel=size_of(found.right.buffer.shape[-2]),
        open_rows=not isinstance(parts[roles.row].extent, Const),
        parts=max([size_of(n) for n in _looked_up_sizes(found.left)], default=1),
        pairs=elements(_looked_up_axes(block)),
        others=prod([x.size for x in parts]) // (rows * columns * width),
    )


def _known_lines(roles: Roles, parts: Sequence[Part]) -> int:
    """Returns how many lines share a right factor, if that is known; else each is computed alone."""
    outer = None if roles.outer_row is None else parts[roles.outer_row]
    return outer.size if outer is not None and isinstance(outer.extent, Const) else 1


@dataclass(frozen=True)
class _Product:
    """The instruction of a product, and the axes of its reduction that it covers: groups of terms, and the terms of a group."""

    operation: TileOperation
    groups: Var
    terms: Var


def _product(block: Block, tile: MatrixTile) -> _Product:
    """Returns the instruction for a block that _problem has found to be a product."""
    found, inner = contraction_of(block), _inner_axis(block)
    assert found is not None
    assert found.group is not None
    assert inner is not None
    factors = found.left.buffer.dtype, found.right.buffer.dtype
    operation = TileOperation("multiply", tile.rows, block.writes[0].buffer.dtype, *factors)
    return _Product(operation, inner.var, found.group.var)


def _row_stride(left: Load, row: Var) -> int:
    """Returns the bytes between rows of the left factor; 0 where an index computes with the row."""
    if row not in left.indices:
        return 0
    return abs(step_along(left.buffer, left.indices, row)) * left.buffer.dtype.bytes


def _inner_axis(block: Block) -> Axis | None:
    """Returns the axis of a reduction over groups that lie side by side in a row of the left factor."""
    found = contraction_of(block)
    if found is None or found.group is None:
        return None
    group = size_of(found.group.extent)
    variables = [a.var for a in reduce_axes(block)]
    terms = linear_terms(found.left.indices[-1], variables)
    steps = {} if terms is None else {v: c.value for v, c in terms[0].items() if isinstance(c, Const)}
    inner = [a for a in reduce_axes(block) if steps.get(a.var) == group and a is not found.group]
    is_next = bool(inner) and len(found.right.indices) > 2 and found.right.indices[-3] is inner[0].var
    return inner[0] if is_next and isinstance(inner[0].extent, Const) else None


def _split_in_blocks(
    s: Schedule, own: Sequence[LoopRef], roles: Roles, tile: MatrixTile
) -> tuple[list[LoopRef], list[LoopRef], LoopRef]:
    """Splits the loops of the results; returns those around tiles held at once, those inside, and the rows inside.

    Outside are blocks of rows that stay in cache, then panels, for each of which the rows are gone through.
    """
    sizes = {roles.row: tile.rows * tile.row_tiles, roles.outer_row: tile.lines, roles.column: tile.columns}
    blocks: list[LoopRef] = []
    panels: list[LoopRef] = []
    others: list[LoopRef] = []
    inner: list[LoopRef] = []
    rows = own[-1]
    for n, loop in enumerate(own[:-1]):
        size, rest, piece = sizes.get(n, 1), loop, loop
        if size > 1 and size != s.extent(loop):
            rest, piece = s.split(loop, [None, size])
        if size > 1:
            inner.append(piece)
        if n == roles.row:
            rows = piece
        if size > 1 and rest == piece:
            continue
        if n == roles.row and tile.row_block:
            block, rest = s.split(rest, [None, tile.row_block])
            blocks.append(block)
        (panels if n == roles.column else others).append(rest)
    lanes = own[-1]
    if tile.wide:
        part, lanes = s.split(lanes, [None, tile.wide * TILE_LANES])
        panels.append(part)
    return [*blocks, *panels, *others], [*inner, lanes], rows


def _schedule_products(
    s: Schedule, ref: BlockRef, depth: int, places: Sequence[int], tile: MatrixTile, product: _Product
) -> None:
    """Orders the loops of the products: the reduction in steps of a tile outside, then tiles, which are unrolled."""
    reduced = loops_of(s, ref, list(s.loops(ref))[depth:], AxisKind.REDUCE)
    terms = loops_of_axis(s, ref, reduced, product.terms)
    groups = loops_of_axis(s, ref, reduced, product.groups)
    steps, group = s.split(groups[0], [None, GROUPS])
    others = [f for f in reduced if f not in terms and f not in groups]
    tiles, row, lane = _tile_loops(s, _loops_at(s, ref, depth, places), tile)
    looked_up = loops_over(s, ref, others, _looked_up_axes(block_of(s, ref)))  # unrolled, neighbours share a factor
    others = [f for f in others if f not in looked_up]
    s.reorder([*others, steps, *looked_up, *tiles, row, lane, group, *terms])
    start = s.decompose_reduction(ref, others[0] if others else steps)
    own = list(s.loops(start))[depth:]
    for loop in (*own[: len(tiles)], *looked_up, *tiles):
        s.unroll(loop)
    s.tensorize(own[len(tiles)], TileOperation("zero", tile.rows, product.operation.sums).name)
    s.tensorize(row, product.operation.name)


def _looked_up_axes(block: Block) -> list[Axis]:
    """Returns the axes of a reduction whose steps read by a table: pairs of parts of the factors."""
    tables = [n for x in inputs_of(block) for i in x.indices for n in post_order(i) if isinstance(n, Select)]
    return [a for a in reduce_axes(block) if any(mentions(n, a.var) for n in tables)]


def _looked_up_sizes(factor: Load) -> list[Expr]:
    """Returns the sizes of the dimensions of a factor whose indices are read by a table: how many parts a number has."""
    by_table = zip(factor.indices, factor.buffer.shape, strict=True)
    return [size for i, size in by_table if any(isinstance(n, Select) for n in post_order(i))]


def _tile_major(rank: int, row: int | None, rows: int, columns: int) -> str:
    """Returns the layout with the elements of a tile of *rows* by *columns* side by side; columns are the last axis."""
    names = [f"x{n}" for n in range(rank)]
    sizes = {row: rows, rank - 1: columns}
    tiles = [f"{x} // {sizes[n]}" if n in sizes else x for n, x in enumerate(names)]
    return f"{', '.join(names)} -> {', '.join(tiles)}, x{row} % {rows}, x{rank - 1} % {columns}"


def _schedule_stores(
    s: Schedule, stored: BlockRef, loops: Sequence[Sequence[LoopRef]], tile: MatrixTile, product: _Product
) -> None:
    """Stores the sums tile by tile, unrolled."""
    tiles, row, lane = _tile_loops(s, loops, tile)
    s.reorder([*tiles, row, lane])
    for loop in tiles:
        s.unroll(loop)
    s.tensorize(row, TileOperation("store", tile.rows, product.operation.sums).name)


def _loops_at(s: Schedule, ref: BlockRef, depth: int, places: Sequence[int]) -> list[list[LoopRef]]:
    """Returns the loops of a block, from number *depth* on, over rows, lines, panels, and over the columns of a panel.

    *places* are the numbers of the axes of rows, of lines and panels, if there are any, and of the columns of a panel.
    """
    axes, loops = spatial_axes(block_of(s, ref)), list(s.loops(ref))[depth:]
    return [loops_of_axis(s, ref, loops, axes[n].var) for n in places]


def _tile_loops(
    s: Schedule, loops: Sequence[Sequence[LoopRef]], tile: MatrixTile
) -> tuple[list[LoopRef], LoopRef, LoopRef]:
    """Splits the loops over rows, lines, panels and columns; returns those over tiles, a tile's rows, and its lanes."""
    rows, columns, lanes = loops[0], [f for x in loops[1:-1] for f in x], loops[-1]
    tiles, row = ([], rows[0]) if tile.row_tiles == 1 else _halves(s, rows[0], tile.rows)
    wide, lane = ([], lanes[0]) if s.extent(lanes[0]) == TILE_LANES else _halves(s, lanes[0], TILE_LANES)
    return [*tiles, *columns, *wide], row, lane


def _halves(s: Schedule, loop: LoopRef, size: int) -> tuple[list[LoopRef], LoopRef]:
    """Splits a loop in steps of *size*; returns the loop over the steps, in a list, and that inside a step."""
    outer, inner = s.split(loop, [None, size])
    return [outer], inner
