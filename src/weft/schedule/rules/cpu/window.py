"""The rule for windows: each result is reduced from a small window of the input that moves along with it.

Depthwise convolutions and pooling use each loaded element few times, so they are bound by loads. A tile of neighbouring results
is computed in registers with the reduction unrolled: elements that windows share are loaded once for all of them, and conditions
at the borders are resolved at compile time. So no padded copy of the input is made.
"""

from __future__ import annotations

from collections.abc import Sequence

from weft.cost import (
    Borders,
    Planner,
    WindowProblem,
    WindowTile,
    WriteOut,
    border_plans,
    elements,
    size_of,
    window_tile_plans,
    write_out_plans,
)
from weft.ir import Const, Var, free_vars
from weft.loop import Block
from weft.schedule.cursors.state import BlockRef, LoopRef
from weft.schedule.legality.trust import proving
from weft.schedule.rules.block_facts import (
    block_of,
    inputs_of,
    reduce_axes,
    spatial_axes,
)
from weft.schedule.rules.cpu.epilogue import epilogue_block
from weft.schedule.rules.cpu.parallel import parallelize
from weft.schedule.rules.cpu.vectorize_axis import vectorize_last
from weft.schedule.rules.sliding_window import borders_of, sliding_axes
from weft.schedule.schedule import Schedule
from weft.support.errors import ScheduleError


def schedule_window(s: Schedule, ref: BlockRef, p: Planner) -> set[BlockRef]:
    """Schedules a reduction over windows with its epilogue block; returns the blocks that are now placed."""
    problem = _problem(block_of(s, ref), p)
    tile = p.decide(ref.name, WindowTile, lambda m: window_tile_plans(problem, m))
    borders = _inline_borders(s, ref, problem, tile, p)
    finish, loops = epilogue_block(s, ref)
    block = block_of(s, ref)
    moving = sliding_axes(block)
    sizes = dict(tile.sizes)
    outer: list[LoopRef] = []
    inner: list[LoopRef] = []
    for n, (loop, axis) in enumerate(zip(loops, spatial_axes(block), strict=True)):
        size = sizes.get(n, 1)
        if size == 1:
            outer.append(loop)
        elif size >= size_of(axis.extent) and isinstance(axis.extent, Const):
            inner.append(loop)
        else:
            rest, piece = s.split(loop, [None, size])
            outer.append(rest)
            inner.append(piece)
    s.reorder([*outer, *inner])
    if outer:
        s.compute_at(ref, outer[-1])
    copy_borders(s, borders, outer[: min([m.position for m in moving])], p)
    s.set_scope(ref, "register")
    along = next((m.tap.var for m in moving if m.tap is not None and m.position == len(loops) - 1), None)
    _write_out(s, ref, len(outer), inner, along, p)
    parallelize(s, ref, outer, p)
    return {ref, finish, *borders}


def _problem(block: Block, p: Planner) -> WindowProblem:
    """Returns the sizes of a reduction over windows."""
    axes, reduced = spatial_axes(block), reduce_axes(block)
    return WindowProblem(
        last=(len(axes) - 1, size_of(axes[-1].extent)),
        lanes=p.lanes(block.writes[0].buffer.dtype.bits),
        slides=tuple([m.slide(reduced[-1]) for m in sliding_axes(block)]),
        taps=elements(reduced),
        columns=size_of(reduced[-1].extent),
        weighted=len(inputs_of(block)) > 1,
    )


def _inline_borders(s: Schedule, ref: BlockRef, problem: WindowProblem, tile: WindowTile, p: Planner) -> list[BlockRef]:
    """Inlines the paddings of the input, so that each load has the padding's condition; returns the padded copies that are left.

    A border that is not inlined is copied, with its padding, before its windows are computed.
    """
    left: list[BlockRef] = []
    for border in borders_of(s, ref):
        try:
            with proving():
                if p.decide(border.name, Borders, lambda m: border_plans(problem, tile, m)).inline:
                    s.compute_inline(border)
                    continue
        except ScheduleError:  # not of the form that can be inlined
            pass
        left.append(border)
    return left


def copy_borders(s: Schedule, borders: Sequence[BlockRef], loops: Sequence[LoopRef], p: Planner) -> None:
    """Computes padded copies of inputs, in vectors, at the innermost of *loops*, whose iterations have one each."""
    for ref in borders:
        lanes = p.lanes(block_of(s, ref).writes[0].buffer.dtype.bits)
        if loops:
            s.compute_at(ref, loops[-1], align=lanes)
        vectorize_last(s, list(s.loops(ref))[len(loops) :], lanes)


def _write_out(s: Schedule, ref: BlockRef, depth: int, finished: list[LoopRef], along: Var | None, p: Planner) -> None:
    """Puts the reduction outside the tile and unrolls both, or the tile and the window's last axis if that is long.

    Where windows slide *along* the vectors, different window positions load overlapping vectors, which share no register. This
    part of the reduction stays a loop, outside the others, so that each loaded vector is used at once.
    """
    own = list(s.loops(ref))[depth:]
    count = len([f for f in own if _is_reduced(s, ref, f)])
    spatial, reduced = own[: len(own) - count], own[len(own) - count :]
    outside = [f for f in reduced if along is not None and _runs_over(s, ref, f, along)]
    reduced = [*outside, *[f for f in reduced if f not in outside]]
    s.reorder([*reduced, *spatial])
    start = s.decompose_reduction(ref, reduced[0])
    size = 1
    for f in [*spatial[:-1], *reduced]:
        size *= s.extent(f) or 1
    if outside and len(outside) < len(reduced):
        written = [f for f in reduced if f not in outside]
    else:
        all_taps = p.decide(ref.name, WriteOut, lambda m: write_out_plans(size, m)).all_taps
        written = reduced if all_taps else reduced[-1:]
    for f in written:
        s.unroll(f)
    for nest in (list(s.loops(start))[depth:], spatial, finished):
        for f in nest[:-1]:
            s.unroll(f)
        s.vectorize(nest[-1])


def _is_reduced(s: Schedule, ref: BlockRef, loop: LoopRef) -> bool:
    return any(_runs_over(s, ref, loop, a.var) for a in reduce_axes(block_of(s, ref)))


def _runs_over(s: Schedule, ref: BlockRef, loop: LoopRef, axis: Var) -> bool:
    """Tells whether *axis* of the block is bound to *loop*."""
    block = block_of(s, ref)
    return any(a.var is axis and loop.var in free_vars(b) for a, b in zip(block.axes, block.bindings, strict=True))
