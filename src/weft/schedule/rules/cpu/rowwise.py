"""The rule for the other blocks around reductions: all values that a row of the result needs are computed for that row.

Softmax, normalisations and means over trailing axes become one pass over memory: the rows are shared among threads, and each
intermediate lives in the cache, one row at a time.
"""

from __future__ import annotations

from math import prod

from weft.cost import (
    MOST_LOOP_VECTORS,
    SHORTEST_REDUCTION,
    OnePass,
    Planner,
    RowsAtOnce,
    bytes_of,
    elements,
    one_pass_plans,
    rows_at_once_plans,
)
from weft.ir import free_vars
from weft.loop import Axis, Load, Store, loads, stores
from weft.schedule.cursors.state import BlockRef, LoopRef
from weft.schedule.cursors.tree import block_path, blocks_in, loops_on
from weft.schedule.legality.trust import proving
from weft.schedule.rules.block_facts import (
    block_of,
    contraction_of,
    inputs_of,
    is_reduction,
    is_tileable,
    reduce_axes,
    spatial_axes,
    uses_axis,
)
from weft.schedule.rules.cpu.horizontal_reduction import reduce_horizontally
from weft.schedule.rules.cpu.parallel import parallelize, sizes
from weft.schedule.rules.cpu.transpose import turns_rows
from weft.schedule.rules.cpu.vectorize_axis import most_vectors, reduce_in_vectors, vectorize_map
from weft.schedule.rules.row_loops import shared_rows
from weft.schedule.rules.sliding_window import sliding_axes
from weft.schedule.schedule import Schedule
from weft.support.errors import ScheduleError


def schedule_rowwise(s: Schedule, p: Planner, placed: set[BlockRef]) -> set[BlockRef]:
    """Schedules the blocks that are not *placed* yet, if there is a reduction among them; returns the blocks that are now placed.

    Where some nests are placed already, each remaining reduction gets a nest of its own.
    """
    before = s.blocks()
    refs = [r for r in before if r not in placed and not _turns_inputs(s, r, p)]
    reductions = [r for r in refs if is_reduction(block_of(s, r))]
    if placed.intersection(before):
        refs = [r for r in reductions if _is_apart(s, r)]
        nests = [[r] for r in refs]
    else:
        nests = [refs] if reductions else []
    for nest in nests:
        _schedule_together(s, nest, p)
    return {r for nest in nests for r in nest} | set(s.blocks()).difference(before)


def is_one_pass(s: Schedule, p: Planner) -> bool:
    """Tells whether to compute row by row although each reduction could be tiled.

    So it is for several reductions of little work, such as those of a softmax along an axis that is not the last, if a row's
    working set fits the second-level cache.
    """
    refs = s.blocks()
    blocks = [block_of(s, r) for r in refs]
    reductions = [b for b in blocks if is_reduction(b)]
    if len(reductions) < 2 or any(contraction_of(b) is not None or sliding_axes(b) for b in reductions):
        return False
    rows = _row_loops(s, [*refs], refs[-1])
    touched = sum(bytes_of(r.buffer) for b in blocks for r in b.writes)
    extents = sizes(s, rows)
    return p.decide(refs[-1].name, OnePass, lambda m: one_pass_plans(extents, touched, m)).by_rows


def _turns_inputs(s: Schedule, ref: BlockRef, p: Planner) -> bool:
    """Tells whether a block makes rows of columns of the inputs: it goes by tiles, before the rows are computed with."""
    block = block_of(s, ref)
    made = block.writes[0].buffer
    if made in s.function.params or not all(x.buffer in s.function.params for x in inputs_of(block)):
        return False
    return turns_rows(block, p.lanes(made.dtype.bits))


def _is_apart(s: Schedule, ref: BlockRef) -> bool:
    """Tells whether a block still has a nest of its own, unchanged."""
    loops = loops_on(block_path(s.function, ref))
    return len(loops) == len(block_of(s, ref).axes) and all(f.kind == "range" and len(blocks_in(f)) == 1 for f in loops)


def _schedule_together(s: Schedule, refs: list[BlockRef], p: Planner) -> None:
    """Shares the rows of the last of *refs* among threads, and computes the others at each row (`compute_at`)."""
    final = refs[-1]
    rows = _some_at_once(s, refs, _row_loops(s, refs, final), p)
    if rows:
        for ref in reversed(refs[:-1]):
            _try_compute_at(s, ref, rows[-1])
    depth = len(rows)
    for ref in refs:
        _schedule_in_row(s, ref, depth if _is_inside(s, ref, rows) else 0, p)
    parallelize(s, final, rows, p)


def _row_loops(s: Schedule, refs: list[BlockRef], final: BlockRef) -> list[LoopRef]:
    """Returns the loops of the final block over the rows that all blocks share."""
    depth = shared_rows([block_of(s, r) for r in refs])
    # the last axis of those is for vectors
    depth = min([depth, *[len(spatial_axes(block_of(s, r))) - 1 for r in refs if is_tileable(s, r)]])
    return list(s.loops(final))[:depth]


def _some_at_once(s: Schedule, refs: list[BlockRef], rows: list[LoopRef], p: Planner) -> list[LoopRef]:
    """Splits the last of the loops over *rows*, so that some rows go through each step together; returns those outside of steps.

    The end of a reduction is a chain of operations that wait for one another, while those of other rows go on.
    """
    blocks = [block_of(s, r) for r in refs]
    reductions = len([b for b in blocks if is_reduction(b)])
    if not rows or reductions == 0 or len(blocks) < 2:
        return rows
    extents = sizes(s, rows)
    touched = max(elements(b.axes) * b.writes[0].buffer.dtype.bytes for b in blocks) // prod(extents)
    plans = rows_at_once_plans
    together = p.decide(refs[-1].name, RowsAtOnce, lambda m: plans(extents, touched, reductions, m)).rows
    if together == 1:
        return rows
    outer, _ = s.split(rows[-1], [None, together])
    return [*rows[:-1], outer]


def _try_compute_at(s: Schedule, ref: BlockRef, loop: LoopRef) -> None:
    try:
        with proving():
            s.compute_at(ref, loop)
    except ScheduleError:  # read by other rows too: it stays before the nest
        return


def _is_inside(s: Schedule, ref: BlockRef, rows: list[LoopRef]) -> bool:
    return bool(rows) and rows[-1] in s.loops(ref)


def _schedule_in_row(s: Schedule, ref: BlockRef, depth: int, p: Planner) -> None:
    """Vectorises a block's own loops: the last spatial one, or the reduction itself by partial results in lanes."""
    block = block_of(s, ref)
    loops = list(s.loops(ref))[depth:]
    lanes = p.lanes(block.writes[0].buffer.dtype.bits)
    if not loops:
        return
    if is_tileable(s, ref):
        if prod(sizes(s, loops[: -len(reduce_axes(block))])) <= MOST_LOOP_VECTORS * lanes:
            s.set_scope(ref, "register")
        reduce_in_vectors(s, ref, loops, lanes)
    elif not is_reduction(block):
        if (
            depth
            and len(loops) == 1
            and block.writes[0].buffer not in s.function.params
            and most_vectors(s, loops[-1], lanes)
        ):
            s.set_scope(ref, "register")
        vectorize_map(s, ref, _fuse_contiguous(s, ref, loops, lanes), lanes, p, SHORTEST_REDUCTION)
    else:
        reduce_horizontally(s, ref, loops[-len(reduce_axes(block)) :], p)


def _fuse_contiguous(s: Schedule, ref: BlockRef, loops: list[LoopRef], lanes: int) -> list[LoopRef]:
    """Fuses the last of *loops* along which every access goes on to the next elements: their sizes need not fill vectors each.

    It stays a loop of its own where it fills them, and where there is but one.
    """
    block = block_of(s, ref)
    axis_of = {b: a for a, b in zip(block.axes, block.bindings, strict=True)}
    axes = [axis_of.get(f.var) for f in loops]
    accesses: list[Load | Store] = [*loads(block.body), *stores(block.body)]
    first = len(loops) - 1
    while first > 0 and all(_goes_on(x, axes[first - 1], axes[first]) for x in accesses):
        first -= 1
    if first == len(loops) - 1 or (s.extent(loops[-1]) or lanes) % lanes == 0:
        return loops
    return [*loops[:first], s.fuse(loops[first:])]


def _goes_on(access: Load | Store, outer: Axis | None, inner: Axis | None) -> bool:
    """Tells whether *access* goes along whole rows of its buffer by *inner*, and from one to the next by *outer*."""
    if outer is None or inner is None:
        return False
    if not uses_axis(access, outer.var) and not uses_axis(access, inner.var):
        return True
    places = [n for n, i in enumerate(access.indices) if i is inner.var]
    others = [i for i in access.indices if i is not inner.var and i is not outer.var]
    return (
        len(places) == 1
        and places[0] > 0
        and access.indices[places[0] - 1] is outer.var
        and access.buffer.shape[places[0]] is inner.extent
        and not any(v in (inner.var, outer.var) for i in others for v in free_vars(i))
    )
