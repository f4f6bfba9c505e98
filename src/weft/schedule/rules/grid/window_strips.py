"""A reduction over windows by threads that compute several results below one another: what their windows share is loaded once.

    for y, x, ky, kx: C[y, x] += P[y + ky, x + kx] * W[ky, kx]

    becomes, with 4 results a thread,

    for b, t in grid:                                       # neighbouring threads have neighbouring x
        for i in unrolled(0, 6), j in unrolled(0, 3): p[i, j] = P[y * 4 + i, x + j]
        for ky, kx: w[ky, kx] = W[ky, kx]
        for y_1 in unrolled(0, 4), ky, kx: c[y_1] += p[y_1 + ky, kx] * w[ky, kx]

Depthwise convolutions and pooling: a thread for each result loads 9 elements of a window of 3 x 3 and 9 weights, and divides its
number into indices for each; here 18 elements and 9 weights serve 4 results. Padding is a condition of the loads.
"""

from __future__ import annotations

from collections.abc import Iterable

from weft.cost import Planner, WindowStrip, elements, window_strip_plans
from weft.ir import Const
from weft.schedule.cursors.state import BlockRef, LoopRef
from weft.schedule.legality.trust import proving
from weft.schedule.rules.block_facts import block_of, inputs_of, reduce_axes, spatial_axes
from weft.schedule.rules.grid.thread_elements import bind_elements
from weft.schedule.rules.grid.thread_reduction import reader_of
from weft.schedule.rules.sliding_window import SlidingAxis, borders_of, sliding_axes
from weft.schedule.schedule import Schedule
from weft.support.errors import ScheduleError


def reduce_in_strips(s: Schedule, ref: BlockRef, threads: int, p: Planner) -> bool:
    """Lets each thread reduce the windows of several results; tells whether that was decided, and legal."""
    block = block_of(s, ref)
    along = _tallest(sliding_axes(block), len(spatial_axes(block)))
    if along is None:
        return False
    reduced = reduce_axes(block)
    slide, taps = along.slide(reduced[-1]), elements(reduced)
    weights = taps * (len(inputs_of(block)) - 1)
    outputs = elements(spatial_axes(block))
    strip = p.decide(ref.name, WindowStrip, lambda m: window_strip_plans(outputs, slide, taps, weights, m)).results
    if strip == 1:
        return False
    try:
        with proving():
            _place(Schedule(s.program), ref, threads, along.position, strip)
    except ScheduleError:  # an epilogue whose results are in another order, say
        return False
    _place(s, ref, threads, along.position, strip)
    return True


def _tallest(axes: Iterable[SlidingAxis], rank: int) -> SlidingAxis | None:
    """Returns the last axis of known size that windows slide along, beside that of neighbouring threads; None without one."""
    found = [m for m in axes if m.position < rank - 1 and m.taps > 1 and isinstance(m.axis.extent, Const)]
    return found[-1] if found else None


def _place(s: Schedule, ref: BlockRef, threads: int, position: int, strip: int) -> None:
    borders = borders_of(s, ref)
    padded = {w.buffer for made in borders for w in block_of(s, made).writes}
    names = dict.fromkeys(x.buffer.name for x in inputs_of(block_of(s, ref)) if x.buffer not in padded)
    copies = [s.cache_read(ref, name, "local") for name in names]
    reader = reader_of(s, ref)
    loops = list(s.loops(reader))
    if len(loops) != len(spatial_axes(block_of(s, ref))):
        raise ScheduleError(f"the results of {reader.name} are not those of {ref.name}, one by one")
    rest, own = s.split(loops[position], [None, strip])
    s.reorder([*loops[:position], rest, *loops[position + 1 :], own])
    thread = bind_elements(s, reader, threads, own=[own])
    if thread is None:
        raise ScheduleError(f"the elements of {reader.name} are not computed by threads")
    for made in (ref, *borders):
        s.compute_at(made, thread)
        s.set_scope(made, "local")
    for made in copies:
        s.compute_at(made, thread)
    for made in (reader, ref, *borders, *copies):
        _unroll_inside(s, made, thread)


def _unroll_inside(s: Schedule, ref: BlockRef, thread: LoopRef) -> None:
    """Unrolls the loops of a block that each thread runs through, so that what they access are registers."""
    loops = list(s.loops(ref))
    for loop in loops[loops.index(thread) + 1 :]:
        s.unroll(loop)
