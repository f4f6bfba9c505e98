"""The rule for windows: each result is reduced from a small window of the input that moves along with it.

Depthwise convolutions and pooling do little with each element they load, so that loads bound them. A tile of neighbouring
results is computed in registers with the reduction written out: elements that windows share are loaded once for all of them,
and the borders are decided when compiling. So no padded copy of the input is made.
"""

from __future__ import annotations

from itertools import product
from math import prod

from weft.ir.expr import Const, Select, Var
from weft.ir.rewrite import free_vars
from weft.loop.nodes import Axis, Block, Load, Store
from weft.schedule.placing import readers
from weft.schedule.rules.facts import (
    block_of,
    elements,
    inputs_of,
    is_reduction,
    reduce_axes,
    size_of,
    spatial_axes,
)  # fmt: skip
from weft.schedule.rules.finish import finishing_block
from weft.schedule.rules.moving import Moving, moving_axes
from weft.schedule.rules.parallel import parallelize
from weft.schedule.rules.vector import vectorize_last
from weft.schedule.schedule import Schedule
from weft.schedule.state import BlockRef, LoopRef
from weft.schedule.tree import alloc_of
from weft.support.errors import ScheduleError
from weft.targets.target import Target

MOST_STATEMENTS = 288
"""How many combinations a tile may be written out as; beyond, only the window's last axis is."""

MOST_COPIES = 1300
"""How many such combinations there may be with a copy of the tile for each of the places where borders are met."""

MIDDLE = 2
"""How many times the tiles at the ends of an axis all of them must be, for those between to be told apart from these."""


def schedule_window(s: Schedule, ref: BlockRef, target: Target) -> set[BlockRef]:
    """Schedules a reduction over windows with its finishing block; returns the blocks that are now in place."""
    borders = _inline_borders(s, ref, target)
    finish, loops = finishing_block(s, ref)
    block = block_of(s, ref)
    moving = moving_axes(block)
    lanes = target.lanes(block.writes[0].buffer.dtype.bits)
    sizes = _tile(block, moving, lanes, target)
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
    _copy(s, borders, outer[: min([m.position for m in moving])], target)
    s.set_scope(ref, "register")
    along = next((m.tap.var for m in moving if m.tap is not None and m.position == len(loops) - 1), None)
    _write_out(s, ref, len(outer), inner, along)
    parallelize(s, outer, elements(block.axes), target)
    return {ref, finish, *borders}


def _inline_borders(s: Schedule, ref: BlockRef, target: Target) -> list[BlockRef]:
    """Takes in what pads the input, so that each load knows whether it is inside; returns the padded copies that are left.

    It pays where all loads can be told apart when compiling. Else what is padded is copied before its windows are computed.
    """
    block = block_of(s, ref)
    read = {x.buffer for x in inputs_of(block)}
    left: list[BlockRef] = []
    decided = _are_borders_decided(block, target)
    for other in s.blocks():
        made = block_of(s, other)
        if made.writes[0].buffer in read and _is_border(s, made) and readers(s.function, made) == [block_of(s, ref)]:
            try:
                if decided:
                    s.compute_inline(other)
                    continue
            except ScheduleError:  # not of the form that can be inlined
                pass
            left.append(other)
    return left


def _are_borders_decided(block: Block, target: Target) -> bool:
    """Tells whether the tiles of each axis are cut into those at its ends and many others, with the code written out for each.

    Along the last axis, borders are inside of vectors, which masks are for; the loop over its taps is not written out.
    """
    axes, moving, reduced = spatial_axes(block), moving_axes(block), reduce_axes(block)
    lanes = target.lanes(block.writes[0].buffer.dtype.bits)
    sizes = _tile(block, moving, lanes, target)
    along = next((m for m in moving if m.position == len(axes) - 1), None)
    if along is not None and not target.masked_memory:
        return False
    whole = elements(reduced) * prod([sizes.get(m.position, 1) for m in moving if m is not along])
    if along is not None:
        whole = whole // along.taps * -(-sizes[along.position] // lanes)
    written_out = along is not None or whole <= MOST_STATEMENTS
    copies = 1
    for m in moving:
        tiles, ends = -(-size_of(m.axis.extent) // sizes.get(m.position, 1)), m.ends(sizes.get(m.position, 1))
        single = tiles <= ends and (written_out or m.tap is reduced[-1])  # each a copy, without a loop of taps
        if m is not along and not single and tiles < ends * MIDDLE:
            return False
        copies *= min(tiles, ends + 1)
    return copies * (whole if written_out else whole // elements(reduced[:-1])) <= MOST_COPIES


def _copy(s: Schedule, copies: list[BlockRef], loops: list[LoopRef], target: Target) -> None:
    """Makes the padded copies of the input where the windows that share them begin."""
    for ref in copies:
        if loops:
            s.compute_at(ref, loops[-1])
        lanes = target.lanes(block_of(s, ref).writes[0].buffer.dtype.bits)
        vectorize_last(s, list(s.loops(ref))[len(loops) :], lanes)


def _is_border(s: Schedule, block: Block) -> bool:
    """Tells whether *block* is a padded copy: an element of something, or a constant."""
    value = block.body.value if isinstance(block.body, Store) and not is_reduction(block) else None
    intermediate = all(alloc_of(s.function.body, r.buffer) is not None for r in block.writes)
    return (
        intermediate and isinstance(value, Select) and isinstance(value.then, Load) and isinstance(value.other, Const)
    )


def _tile(block: Block, moving: list[Moving], lanes: int, target: Target) -> dict[int, int]:
    """Returns the sizes of a tile by the positions of its axes: the last axis, and the last two that windows move along.

    Of the tiles that leave half of the registers for loaded elements, the one with the fewest cycles for the whole result.
    """
    axes = spatial_axes(block)
    last = len(axes) - 1
    width = min(size_of(axes[last].extent), lanes)
    tiled = [m for m in moving if m.position != last][-2:]
    along = next((m for m in moving if m.position == last), None)
    room = target.vector_registers // 2 - 1
    best: tuple[float, dict[int, int]] | None = None
    choices = [_counts(size_of(m.axis.extent), room) for m in tiled]
    vectors = _counts(-(-size_of(axes[last].extent) // lanes), min(room, 8)) if along is not None else [1]
    for *counts, v in product(*choices, vectors):
        sums = v
        for n in counts:
            sums *= n
        if sums > room:
            continue
        cost = _cost(block, tiled, counts, along, v, target) * _tiles(axes, tiled, counts, v * width)
        if best is None or cost < best[0] * 0.999:
            best = cost, {**{m.position: n for m, n in zip(tiled, counts, strict=True)}, last: v * width}
    return best[1] if best is not None else {last: width}


def _counts(size: int, most: int) -> list[int]:
    """Returns the tile sizes worth trying along an axis: those that cut it into pieces as even as can be."""
    return [n for n in range(1, min(size, most) + 1) if -(-size // -(-size // n)) == n]


def _tiles(axes: list[Axis], tiled: list[Moving], counts: list[int], width: int) -> int:
    total = -(-size_of(axes[-1].extent) // width)
    for m, n in zip(tiled, counts, strict=True):
        total *= -(-size_of(m.axis.extent) // n)
    return total


def _cost(
    block: Block, tiled: list[Moving], counts: list[int], along: Moving | None, vectors: int, target: Target
) -> float:
    """Returns the cycles of one tile: bound by arithmetic or by loads, and a part of what the other takes."""
    taps = elements(reduce_axes(block))
    sums = vectors
    loads = vectors if along is None else vectors * along.taps * UNALIGNED * along.stride
    for m, n in zip(tiled, counts, strict=True):
        sums *= n
        loads *= m.touched(n)
    weights = taps if len(inputs_of(block)) > 1 else 0
    arithmetic = taps * sums / max(1, target.fma_per_cycle)
    loading = (loads + weights) / LOADS_PER_CYCLE
    return max(arithmetic, loading, taps * LATENCY) + PRESSURE * min(arithmetic, loading) + sums


UNALIGNED = 1.5
"""What a load costs that crosses from one cache line into the next, as every other one does along a row."""

LOADS_PER_CYCLE = 2
LATENCY = 4
PRESSURE = 0.5
"""The part that shows of what loads and arithmetic do at the same time."""


def _write_out(s: Schedule, ref: BlockRef, depth: int, finished: list[LoopRef], along: Var | None) -> None:
    """Puts the reduction outside the tile and unrolls both, or the tile and the window's last axis if that is long.

    Where windows move *along* the vectors, no element is loaded twice in a register for different places of a window on its
    way along them: this part of the reduction stays a loop, outside the others, for which each loaded vector is used at once.
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
        written = reduced if size <= MOST_STATEMENTS else reduced[-1:]
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
