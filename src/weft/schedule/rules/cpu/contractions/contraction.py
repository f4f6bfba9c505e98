"""The rule for reductions whose last written axis is contiguous in their inputs: contractions and windows.

The result is computed in register tiles: a tile holds vectors along the last axis, for several values of another axis, and the
whole reduction runs before the epilogue is applied to the tile and it is stored once (Goto and van de Geijn, "Anatomy of
high-performance matrix multiplication", 2008, with the tile sizes of `tiles`).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from math import prod
from typing import TypeAlias

from weft.cost import (
    Order,
    OrderProblem,
    Planner,
    Tile,
    TileProblem,
    bytes_of,
    bytes_touched,
    elements,
    order_plans,
    packed_problem,
    size_of,
    step_along,
    tile_plans,
)
from weft.ir import ONE, Const, Var, free_vars, index
from weft.loop import AxisKind, Block, Load, stores
from weft.schedule.cursors.state import BlockRef, LoopRef
from weft.schedule.legality.access_region import at_loops
from weft.schedule.rules.block_facts import (
    Contraction,
    block_of,
    contraction_of,
    loops_of,
    loops_over,
    reduce_axes,
    spatial_axes,
    uses_axis,
)
from weft.schedule.rules.cpu.contractions.computed_panel import compute_panel
from weft.schedule.rules.cpu.contractions.packed_panel import is_packed, pack_panel
from weft.schedule.rules.cpu.contractions.packed_windows import pack_windows, packs_windows
from weft.schedule.rules.cpu.contractions.skip_padding import Skipping, put_channels_inside, skip_padding, skipping
from weft.schedule.rules.cpu.contractions.tile_roles import Part, Roles, parts_of, roles_of
from weft.schedule.rules.cpu.epilogue import epilogue_block
from weft.schedule.rules.cpu.parallel import parallelize
from weft.schedule.rules.cpu.software_prefetch import fuse_panel_loops, prefetch_streams, prefetch_window_steps
from weft.schedule.schedule import Schedule
from weft.targets import Target
from weft.targets.instructions import INTRINSICS, DotProduct, dot_products

PlacePanel: TypeAlias = Callable[[Schedule, BlockRef, Sequence[LoopRef], int], tuple[list[LoopRef], set[BlockRef]]]
"""Puts what makes a panel into the loop over panels, among those around tiles; returns the loops around it, and its blocks."""


def schedule_tiled(s: Schedule, ref: BlockRef, p: Planner) -> set[BlockRef]:
    """Schedules a reduction with its epilogue block; returns the blocks that are now placed."""
    finish, loops = epilogue_block(s, ref)
    return tile_nest(s, ref, finish, loops, p)


def tile_nest(
    s: Schedule,
    ref: BlockRef,
    finish: BlockRef,
    loops: Sequence[LoopRef | None],
    p: Planner,
    share: bool = True,
    instruction: str = "",
) -> set[BlockRef]:
    """Tiles a reduction in the nest of its epilogue *finish*, which may be inside other loops; returns both.

    *loops* has the nest's loop for each spatial axis of the reduction, None where the nest has a single value of it. With
    *share*, the loops outside the tiles run in parallel; only then is padding skipped. With an *instruction*, a dot product,
    that computes a vector of sums.
    """
    block = block_of(s, ref)
    lanes = p.lanes(block.writes[0].buffer.dtype.bits)
    around = len(s.loops(finish)) - len([f for f in loops if f is not None])
    parts, own = split_parts(s, block, loops)
    roles, near = _roles_and_order(ref, block, parts, p)
    by_panels = share and not near and not instruction
    problem = tile_problem(block, parts, roles, by_rows=near)
    packed = by_panels and is_packed(s, ref, parts, roles, problem, p)
    tile = _tile(ref, packed_problem(problem) if packed else problem, p, instruction)
    outer, inner, last = _split_in_tiles(s, own, parts, roles, tile)
    outer = outer if near else _outer_order(outer, parts, roles)
    s.reorder([*outer, *inner, last])
    s.compute_at(ref, outer[-1], align=lanes, guarded=not instruction)  # an instruction computes whole vectors
    s.set_scope(ref, "register")
    column, depth = _column_axis(parts, roles), around + len(outer)
    innermost, one_instruction = _order_tile(s, ref, depth, column, lanes, is_dot=bool(instruction))
    unroll_tile(s, [*inner, last])
    inside = len(s.loops(ref)) - depth
    sums = tile.sums(lanes)
    skipped = skipping(s, ref, outer, sums, p) if by_panels else None
    cut, whole, innermost = _cut_by(s, ref, skipped, outer, innermost)
    whole = fuse_panel_loops(s, ref, whole, innermost, tile.width, p)
    windows = by_panels and skipped is None and packs_windows(s, ref, whole, parts, roles, tile, p)
    place_panel = _panel_placement(packed=packed, windows=windows)
    panel: set[BlockRef] = set()
    if share:
        whole, panel = place_panel(s, ref, whole, lanes)
        parallelize(s, ref, whole, p)
    tile_depth = len(s.loops(ref)) - inside
    if place_panel is compute_panel:
        prefetch_streams(s, ref, innermost, tile_depth, tile.width, p, cut)
    if one_instruction is not None:
        s.tensorize(one_instruction, instruction)
    if skipped is not None:
        return {ref, finish, *skip_padding(s, ref, skipped), *panel}
    prefetch_window_steps(s, ref, innermost, tile_depth, sums, p)
    return {ref, finish, *panel}


def _cut_by(
    s: Schedule, ref: BlockRef, skipped: Skipping | None, outer: Sequence[LoopRef], innermost: LoopRef
) -> tuple[list[LoopRef], Sequence[LoopRef], LoopRef]:
    """Returns the loops that skipping padding will partition, those of *outer* around them, and a reduction's innermost loop."""
    if skipped is None:
        return [], outer, innermost
    return skipped.cut, skipped.uncut(outer), put_channels_inside(s, ref, skipped, innermost)


def _panel_placement(*, packed: bool, windows: bool) -> PlacePanel:
    """Returns the function that makes each panel of the right factor where it is used: *packed*, of *windows*, or computed."""
    if packed:
        return pack_panel
    return pack_windows if windows else compute_panel


def _split_in_tiles(
    s: Schedule, own: Sequence[LoopRef], parts: Sequence[Part], roles: Roles, tile: Tile
) -> tuple[list[LoopRef], list[LoopRef], LoopRef]:
    """Splits the loops over *parts* by a tile's sizes; returns those around tiles, those in a tile, and the vectorised one."""
    sizes = {roles.row: tile.rows, roles.column: tile.columns, roles.outer_row: tile.outer_rows}
    outer: list[LoopRef] = []
    inner: list[LoopRef] = []
    for n, loop in enumerate(own[:-1]):
        size = sizes.get(n, 1)
        if size > 1:
            rest, piece = s.split(loop, [None, size])
            outer.append(rest)
            inner.append(piece)
        else:
            outer.append(loop)
    last, extent = own[-1], parts[-1].extent
    if not isinstance(extent, Const) or parts[-1].size > tile.width or not outer:
        rest, last = s.split(last, [None, tile.width])
        outer.append(rest)
    return outer, inner, last


def split_parts(s: Schedule, block: Block, loops: Sequence[LoopRef | None]) -> tuple[list[Part], list[LoopRef]]:
    """Returns the parts of the axes that have one of *loops*, and a loop for each: the loops of grouped axes are split."""
    parts: list[Part] = []
    own: list[LoopRef] = []
    for axis, loop in zip(spatial_axes(block), loops, strict=True):
        if loop is not None:
            extent = s.extent(loop)
            if extent is not None and extent < size_of(axis.extent):
                found = [Part(axis, index(extent))]  # cut by loops around this nest
            else:
                found = parts_of(axis, block)
            parts += found
            own += [loop] if len(found) == 1 else s.split(loop, [None, found[-1].size])
    return parts, own


def _roles_and_order(ref: BlockRef, block: Block, parts: Sequence[Part], p: Planner) -> tuple[Roles, bool]:
    """Returns the axes of a tile, and whether tiles go by rows: then none has columns from an axis outside the rows'."""
    roles = roles_of(block, parts[:-1])
    by_rows = _is_by_rows(ref, block, parts, roles, p)
    if by_rows and roles.column is not None and roles.row is not None and roles.column < roles.row:
        roles = Roles(roles.row, None, roles.outer_row)
    return roles, by_rows


def _is_by_rows(ref: BlockRef, block: Block, parts: Sequence[Part], roles: Roles, p: Planner) -> bool:
    """Decides whether whole rows of the result are written one after another, as sequential stores use memory bandwidth best.

    Then the loop over panels stays inside the loop over rows, and the matrices of a batch are computed one by one.
    """
    found, last = contraction_of(block), parts[-1]
    if found is None or not isinstance(last.extent, Const) or not uses_axis(found.right, last.axis.var):
        return False
    return p.decide(
        ref.name, Order, lambda m: order_plans(_order(block, found, parts, roles, m.caches.line), m)
    ).by_rows


def _order(block: Block, found: Contraction, parts: Sequence[Part], roles: Roles, line: int) -> OrderProblem:
    """Returns the footprints that the order of tiles depends on, in whole cache lines of *line* bytes."""
    last = parts[-1]
    (store,) = stores(block.body)
    size = store.buffer.dtype.bytes
    columns = _columns(parts, roles)
    rows = [] if roles.row is None else [parts[roles.row]]
    row = last.size * prod([x.size for x in columns])
    walked = {x.axis.var: x.size for x in (*columns, last)}
    return OrderProblem(
        row_bytes=row * size,
        panels=elements(reduce_axes(block)) * row * size,
        result=bytes_of(store.buffer),
        image=bytes_touched(store.buffer, store.indices, {x.axis.var: x.size for x in rows} | walked, line),
        windows=_row_windows(block, found, parts, roles, line),
    )


def _columns(parts: Sequence[Part], roles: Roles) -> list[Part]:
    """Returns the parts beside the last that go through columns inside of rows."""
    return [] if roles.column is None or roles.column < (roles.row or 0) else [parts[roles.column]]


def _row_windows(block: Block, found: Contraction | None, parts: Sequence[Part], roles: Roles, line: int) -> int:
    """Returns the bytes of the right factor, if there is one, that a whole row of the result takes, in lines of *line* bytes."""
    if found is None:
        return 0
    walked = {x.axis.var: x.size for x in (*_columns(parts, roles), parts[-1])}
    walked |= {a.var: size_of(a.extent) for a in reduce_axes(block)}
    return bytes_touched(found.right.buffer, found.right.indices, walked, line)


def _column_axis(parts: Sequence[Part], roles: Roles) -> Var | None:
    """Returns the axis of which a tile holds several columns, if there is one."""
    return None if roles.column is None else parts[roles.column].axis.var


def _tile(ref: BlockRef, problem: TileProblem, p: Planner, instruction: str) -> Tile:
    if instruction and (shape := INTRINSICS[instruction].dot) is not None:
        problem = _by_instruction(problem, shape)
    return p.decide(ref.name, Tile, lambda m: tile_plans(_on_machine(problem, instruction, m), m))


def tile_problem(block: Block, parts: Sequence[Part], roles: Roles, *, by_rows: bool = False) -> TileProblem:
    """Returns the sizes for which the tile of a reduction over *parts* is chosen, whose tiles may go *by_rows* of the result."""
    row, column, outer = (parts[n].extent if n is not None else ONE for n in (roles.row, roles.column, roles.outer_row))
    found, written = contraction_of(block), block.writes[0].buffer
    return TileProblem(
        row=size_of(row),
        column=size_of(column),
        last=parts[-1].size,
        depth=elements(reduce_axes(block)),
        element_bytes=written.dtype.bytes,
        open_row=not isinstance(row, Const),
        open_column=not isinstance(column, Const),
        open_last=not isinstance(parts[-1].extent, Const),
        outer_row=size_of(outer) if isinstance(row, Const) and isinstance(outer, Const) else 1,
        shared=roles.shared,
        left_stride=0 if found is None or roles.row is None else _stride(found.left, parts[roles.row].axis.var),
        right_stride=0 if found is None else _stride(found.right, reduce_axes(block)[-1].var),
        right_bytes=0 if found is None else bytes_of(found.right.buffer),
        conversions=0 if found is None else found.conversions,
        windows=found is not None and not all(isinstance(i, Var) for i in found.right.indices),
        between=_row_windows(block, found, parts, roles, written.dtype.bytes) if by_rows else 0,
    )


def _by_instruction(problem: TileProblem, shape: DotProduct) -> TileProblem:
    """Returns *problem* with a dot product of *shape* for each step."""
    return replace(
        problem,
        depth=problem.depth // shape.group,
        conversions=problem.conversions + shape.column_operations,
        row_conversions=shape.row_operations,
        cycles=shape.cycles,
        temporaries=shape.temporaries,
        right_part=shape.group * shape.b.bytes / shape.sums.bytes,
    )


def _on_machine(problem: TileProblem, instruction: str, machine: Target) -> TileProblem:
    """Returns *problem* with the time that the *instruction* of a dot product, if there is one, takes on *machine*."""
    known = dot_products(machine).get(instruction) if instruction else None
    return problem if known is None else replace(problem, cycles=known.cycles)


def _stride(load: Load, axis: Var) -> int:
    """Returns how many bytes apart *load* reads for one value of *axis* and for the next."""
    return abs(step_along(load.buffer, load.indices, axis)) * load.buffer.dtype.bytes


def _outer_order(outer: Sequence[LoopRef], parts: Sequence[Part], roles: Roles) -> list[LoopRef]:
    """Puts the loop over the right factor's panels outside the loop over rows, so that a panel stays in cache."""
    order = list(outer)
    if len(outer) == len(parts):  # the last axis is split too: its outer part moves with the panels
        panel = order.pop()
        order.insert(roles.row if roles.row is not None else len(order), panel)
    if roles.column is not None and roles.row is not None and roles.column > roles.row:
        moved = outer[roles.column]
        order.remove(moved)
        order.insert(order.index(outer[roles.row]), moved)
    return order


def _order_tile(
    s: Schedule, ref: BlockRef, depth: int, column: Var | None, lanes: int, *, is_dot: bool
) -> tuple[LoopRef, LoopRef | None]:
    """Orders the loops of a tile; returns the innermost of the reduction, and that of one instruction if it *is_dot*."""
    return schedule_dot_tile(s, ref, depth, column, lanes) if is_dot else (_schedule_tile(s, ref, depth, column), None)


def _schedule_tile(s: Schedule, ref: BlockRef, depth: int, column: Var | None) -> LoopRef:
    """Orders the loops of the tile itself: the reduction outside, then rows, columns and the last axis as a vector.

    A row's element of the left factor is used for all columns at once, so that only the columns' few vectors of the right factor
    are kept in registers as operands. Returns the innermost loop of the reduction.
    """
    loops = list(s.loops(ref))[depth:]
    reduced = loops_of(s, ref, loops, AxisKind.REDUCE)
    spatial = [f for f in loops if f not in reduced]
    reduced = reduced or [s.add_unit_loop(ref)]  # a sum of one term
    columns = [] if column is None else loops_of_axis(s, ref, spatial[:-1], column)
    spatial = [*[f for f in spatial[:-1] if f not in columns], *columns, *spatial[-1:]]
    s.reorder([*reduced, *spatial])
    start = s.decompose_reduction(ref, reduced[0])
    unroll_tile(s, list(s.loops(start))[depth:])
    unroll_tile(s, spatial)
    return reduced[-2] if _unroll_fields(s, ref, reduced) else reduced[-1]


def _unroll_fields(s: Schedule, ref: BlockRef, reduced: Sequence[LoopRef]) -> bool:
    """Unrolls the innermost loop of a reduction whose steps read the same element of the right factor: several weights in it."""
    found = contraction_of(block_of(s, ref))
    if found is None or len(reduced) < 2 or s.extent(reduced[-1]) is None:
        return False
    block = block_of(s, ref)
    used = {v for i in found.right.indices for v in free_vars(at_loops(block, i))}
    if reduced[-1].var in used:
        return False
    s.unroll(reduced[-1])
    return True


def schedule_dot_tile(
    s: Schedule, ref: BlockRef, depth: int, column: Var | None, lanes: int
) -> tuple[LoopRef, LoopRef]:
    """Orders the loops of a tile of dot products: groups of terms outside, then rows, columns, and vectors of *lanes* sums.

    Returns the innermost loop over groups, and the loop over the columns of one instruction, which the terms of a group are in.
    """
    loops = list(s.loops(ref))[depth:]
    *groups, terms = loops_of(s, ref, loops, AxisKind.REDUCE)
    groups = groups or [s.add_unit_loop(ref)]
    *rows, last = [f for f in loops if f is not terms and f not in groups]
    columns = [] if column is None else loops_of_axis(s, ref, rows, column)
    vectors, lane = s.split(last, [None, lanes])
    tile = [*[f for f in rows if f not in columns], *columns, vectors]
    s.reorder([*groups, *tile, lane, terms])
    start = s.decompose_reduction(ref, groups[0])
    unroll_tile(s, list(s.loops(start))[depth:])
    for piece in tile:
        s.unroll(piece)
    return groups[-1], lane


def unroll_tile(s: Schedule, spatial: Sequence[LoopRef]) -> None:
    """Unrolls the loops of a register tile, and vectorises the last one.

    A loop over a symbolic size whose limit is within the tile stays as it is: it has no number of iterations.
    """
    for piece in spatial:
        if s.extent(piece) is not None:
            s.vectorize(piece) if piece is spatial[-1] else s.unroll(piece)


def loops_of_axis(s: Schedule, ref: BlockRef, loops: Sequence[LoopRef], axis: Var) -> list[LoopRef]:
    """Returns those of *loops* that *axis* is bound to."""
    return loops_over(s, ref, loops, [a for a in block_of(s, ref).axes if a.var is axis])
