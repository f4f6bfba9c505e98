"""The rule for reductions whose last written axis is contiguous in what they read: contractions and windows.

The result is computed in tiles of registers: a tile holds vectors along the last axis, for several values of another axis,
and the whole reduction runs before the tile is finished by the element-wise work that follows and stored once (Goto and van de
Geijn, "Anatomy of high-performance matrix multiplication", 2008, with the tile sizes of `tiles`).
"""

from __future__ import annotations

from collections.abc import Sequence
from math import prod

from weft.ir.expr import ONE, Const, Var, index
from weft.ir.rewrite import free_vars
from weft.loop.nodes import AxisKind, Block, Load
from weft.loop.visit import stores
from weft.schedule.rules.facts import (
    block_of,
    contraction_of,
    elements,
    loops_of,
    reduce_axes,
    size_of,
    spatial_axes,
    uses_axis,
)  # fmt: skip
from weft.schedule.rules.finish import finishing_block
from weft.schedule.rules.footprint import bytes_of, bytes_touched, step_along
from weft.schedule.rules.padding import put_channels_inside, skip_padding, skipping
from weft.schedule.rules.parallel import parallelize
from weft.schedule.rules.roles import Part, Roles, parts_of, roles_of
from weft.schedule.rules.streams import ask_ahead, ask_for_places, join_panels
from weft.schedule.rules.tiles import Problem, Tile, choose_tile
from weft.schedule.schedule import Schedule
from weft.schedule.state import BlockRef, LoopRef
from weft.targets.target import Target

LONG_ROW = 4
"""Vectors of the longest row that is one panel."""

L1_SHARE = 0.5
"""The part of the first-level cache that a right factor may fill."""

L2_SHARE = 0.25
"""The part of the second-level cache that it may fill where the result does not stay in that cache."""

RESULT_SHARE = 0.75
"""The part of the second-level cache that a result may fill and stay there."""


def schedule_tiled(s: Schedule, ref: BlockRef, target: Target) -> set[BlockRef]:
    """Schedules a reduction with its finishing block; returns the blocks that are now in place."""
    finish, loops = finishing_block(s, ref)
    return tile_nest(s, ref, finish, loops, target)


def tile_nest(
    s: Schedule, ref: BlockRef, finish: BlockRef, loops: Sequence[LoopRef | None], target: Target, share: bool = True
) -> set[BlockRef]:
    """Tiles a reduction in the nest of *finish*, which may be inside other loops; returns both.

    *loops* has one of that nest for each spatial axis of the reduction, None where the nest has a single value of it. Those
    outside the tiles run in parallel if it is theirs to *share* the work; only then is padding left out.
    """
    block = block_of(s, ref)
    around = len(s.loops(finish)) - len([f for f in loops if f is not None])
    parts, own = _taken_apart(s, block, loops)
    roles = roles_of(block, parts[:-1])
    near = _is_near(block, parts, roles, target)
    if near and roles.column is not None and roles.row is not None and roles.column < roles.row:
        roles = Roles(roles.row, None, roles.outer_row)
    tile = _tile(block, parts, roles, target)
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
    last = own[-1]
    if parts[-1].size > tile.width or not isinstance(parts[-1].extent, Const) or not outer:
        rest, last = s.split(last, [None, tile.width])
        outer.append(rest)
    outer = outer if near else _outer_order(outer, parts, roles)
    s.reorder([*outer, *inner, last])
    s.compute_at(ref, outer[-1], align=target.lanes(block.writes[0].buffer.dtype.bits))
    s.set_scope(ref, "register")
    innermost = _schedule_tile(s, ref, around + len(outer), parts, roles)
    for piece in inner:
        s.unroll(piece)
    s.vectorize(last)
    inside = len(s.loops(ref)) - around - len(outer)
    sums = tile.sums(target.lanes(block.writes[0].buffer.dtype.bits))
    skipped = skipping(s, ref, outer, sums, target) if share and not near else None
    cut, whole = ([], outer) if skipped is None else (skipped.cut, skipped.uncut(outer))
    innermost = innermost if skipped is None else put_channels_inside(s, ref, skipped, innermost)
    whole = join_panels(s, ref, whole, innermost, tile.width, target)
    if share:
        parallelize(s, whole, elements(block.axes), target)
    ask_ahead(s, ref, innermost, len(s.loops(ref)) - inside, tile.width, target, cut)
    if skipped is None:
        ask_for_places(s, ref, innermost, len(s.loops(ref)) - inside, sums, target)
    copies = set() if skipped is None else skip_padding(s, ref, skipped)
    return {ref, finish, *copies}


def _taken_apart(s: Schedule, block: Block, loops: Sequence[LoopRef | None]) -> tuple[list[Part], list[LoopRef]]:
    """Returns the parts of the axes that have one of *loops*, and a loop for each: those in groups are split."""
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


def _is_near(block: Block, parts: Sequence[Part], roles: Roles, target: Target) -> bool:
    """Tells whether all panels of a right factor with long rows stay near together.

    Then whole rows of the result are written one after another, which is what memory is quick at: no panel goes outside the
    rows, and no other matrix of a batch is computed with this one. Near is the first-level cache, or the second-level one if
    the result would not stay there. Windows share much of what they read; but to go from plane to plane of it for each row is
    worse than to write in pieces, unless not even the part of the result that one image gives would stay.
    """
    found, last = contraction_of(block), parts[-1]
    if found is None or not isinstance(last.extent, Const) or not uses_axis(found.right, last.axis.var):
        return False
    (store,) = stores(block.body)
    bits = store.buffer.dtype.bits
    columns = [] if roles.column is None or roles.column < (roles.row or 0) else [parts[roles.column]]
    row = last.size * prod([p.size for p in columns])
    panels = elements(reduce_axes(block)) * row * bits // 8
    near = target.l1 * L1_SHARE
    if bytes_of(store.buffer) > target.l2 * RESULT_SHARE:
        near = max(near, target.l2 * L2_SHARE)
    rows = [] if roles.row is None else [parts[roles.row]]
    walked = {p.axis.var: p.size for p in (*columns, last)}
    image = bytes_touched(store.buffer, store.indices, {p.axis.var: p.size for p in rows} | walked)
    if image > target.l2 * RESULT_SHARE:
        windows = {a.var: size_of(a.extent) for a in reduce_axes(block)} | walked
        panels = min(panels, bytes_touched(found.right.buffer, found.right.indices, windows))
    return row > LONG_ROW * target.lanes(bits) and panels <= near


def _tile(block: Block, parts: Sequence[Part], roles: Roles, target: Target) -> Tile:
    row, column, outer = (parts[n].extent if n is not None else ONE for n in (roles.row, roles.column, roles.outer_row))
    found, written = contraction_of(block), block.writes[0].buffer
    problem = Problem(
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
        right_bytes=0 if found is None else bytes_of(found.right.buffer),
    )
    return choose_tile(problem, target)


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


def _schedule_tile(s: Schedule, ref: BlockRef, depth: int, parts: Sequence[Part], roles: Roles) -> LoopRef:
    """Orders the loops of the tile itself: the reduction outside, then rows, columns and the last axis as a vector.

    A row's element of the left factor is used for all columns at once, so that the columns' few vectors of the right factor
    stay in registers and no other operand does. Returns the innermost loop of the reduction.
    """
    loops = list(s.loops(ref))[depth:]
    reduced = loops_of(s, ref, loops, AxisKind.REDUCE)
    spatial = [f for f in loops if f not in reduced]
    reduced = reduced or [s.add_unit_loop(ref)]  # a sum of one term
    columns = _loops_of_axis(s, ref, spatial[:-1], parts[roles.column].axis.var) if roles.column is not None else []
    spatial = [*[f for f in spatial[:-1] if f not in columns], *columns, *spatial[-1:]]
    s.reorder([*reduced, *spatial])
    start = s.decompose_reduction(ref, reduced[0])
    _unroll_tile(s, list(s.loops(start))[depth:])
    _unroll_tile(s, spatial)
    return reduced[-1]


def _unroll_tile(s: Schedule, spatial: Sequence[LoopRef]) -> None:
    for piece in spatial[:-1]:
        s.unroll(piece)
    if spatial:
        s.vectorize(spatial[-1])


def _loops_of_axis(s: Schedule, ref: BlockRef, loops: Sequence[LoopRef], axis: Var) -> list[LoopRef]:
    """Returns those of *loops* that *axis* is bound to."""
    block = block_of(s, ref)
    bound = {v for a, b in zip(block.axes, block.bindings, strict=True) if a.var is axis for v in free_vars(b)}
    return [f for f in loops if f.var in bound]
