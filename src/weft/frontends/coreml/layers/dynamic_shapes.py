"""Layers whose shapes are data, and those that write, choose and count elements: slices, fills, ranges, scatters."""

from __future__ import annotations

from typing import Any, Final

import numpy as np

from weft.frontends.coreml.call import AGAIN
from weft.frontends.coreml.layer_table import layer
from weft.frontends.coreml.network_call import NetworkCall
from weft.frontends.coreml.ops.boxes_and_places import chosen_boxes
from weft.frontends.coreml.ops.movement import range_between, slice_masked, windows_along
from weft.frontends.coreml.ops.updates import combined
from weft.graph.builder import CompileTimeConstant, Operand
from weft.graph.composites.selection import non_zero
from weft.graph.composites.sequences import reverse
from weft.graph.composites.slicing import FAR, reshape_open, slice_axes
from weft.support.dtypes import f32, i64

_MODES: Final = [f"SCATTER_{how}" for how in ("UPDATE", "ADD", "SUB", "MUL", "DIV", "MAX", "MIN")]
"""How updates are combined with the elements there: the schema's names, by its numbers."""

_MOST_NUMBERS: Final = 1 << 24


def _sizes(c: NetworkCall, i: int) -> list[Any]:
    """Returns an input as a list of sizes, those that a run tells among them."""
    return c.late_sizes(c.input(i), "size", f"its input {i}")


@layer(1145, "reshapeDynamic")
def reshape_dynamic(c: NetworkCall) -> Operand:
    """The elements in a shape that is data: 0 keeps a size, and -1 is inferred."""
    x, sizes = c.input(), _sizes(c, 1)
    kept = [x.shape[d] if s == 0 and d < x.rank else s for d, s in enumerate(sizes)] if sizes.count(0) else sizes
    return reshape_open(c, x, kept)


@layer(1110, "broadcastToDynamic")
def broadcast_to_dynamic(c: NetworkCall) -> Operand:
    """The elements repeated to a shape that is data."""
    return c.add("expand", c.input(), shape=tuple(_sizes(c, 1)))


@layer(1085, "fillStatic")
def fill_static(c: NetworkCall) -> Operand:
    """A tensor of one number."""
    return c.add("full", shape=tuple(c.ints(2)), value=c.params.number(1), dtype=f32)


@layer(1090, "fillDynamic")
def fill_dynamic(c: NetworkCall) -> Operand:
    """A tensor of one number, in a shape that is data."""
    return c.add("expand", c.scalar(c.params.number(1), f32), shape=tuple(_sizes(c, 0)))


@layer(635, "rangeStatic")
def range_static(c: NetworkCall) -> Operand:
    """Numbers from a start to before an end."""
    return _numbers(c, c.params.number(2), c.params.number(1), c.params.number(3) or 1.0)


@layer(640, "rangeDynamic")
def range_dynamic(c: NetworkCall) -> Operand:
    """Numbers from a start to before an end, which are data; the start and the step may be parameters."""
    end = c.input(0)
    start = c.input(1) if len(c.inputs) > 1 else c.scalar(c.params.number(2), f32)
    step = c.input(2) if len(c.inputs) > 2 else c.scalar(c.params.number(3) or 1.0, f32)
    known = [_known(v) for v in (start, end, step)]
    numbers = [v for v in known if v is not None]
    if len(numbers) == len(known):
        return _numbers(c, *numbers)
    if known[2] is None or any(v % 1 for v in numbers):
        c.fail("a step that a run computes, or is no integer, is not supported", "convert the model to an mlprogram")
    return range_between(c, start, end, int(known[2]), f32)


def _known(x: Operand) -> float | None:
    return float(x.array.reshape(())) if isinstance(x, CompileTimeConstant) and not x.symbolic else None


def _numbers(c: NetworkCall, start: float, end: float, step: float) -> Operand:
    if not step or not -_MOST_NUMBERS < (end - start) / step <= _MOST_NUMBERS:
        c.fail(f"its range goes from {start} to {end} by {step}", AGAIN)
    return CompileTimeConstant(np.arange(start, end, step).astype(np.float32))


@layer(1000, "sliceDynamic")
def slice_dynamic(c: NetworkCall) -> Operand:
    """Every so many elements between two places that are data; masks leave out ends, or drop dimensions."""
    x = c.input()
    begin = _sizes(c, 1)
    end = _sizes(c, 2) if len(c.inputs) > 2 else c.ints(3)
    steps = _whole(c, 3) if len(c.inputs) > 3 else c.ints(5, [1] * x.rank)
    masks = [
        _whole(c, i) if len(c.inputs) > i else [*(c.params.integers(n) or [0] * x.rank)][: x.rank]
        for i, n in ((4, 2), (5, 4), (6, 6))
    ]
    return slice_masked(c, x, begin, end, steps, masks)


def _whole(c: NetworkCall, i: int) -> list[int]:
    """Returns an input that is a list of known integers."""
    found = _sizes(c, i)
    if not all(isinstance(v, int) for v in found):
        c.fail(f"its input {i} is computed when the model runs", "convert the model to an mlprogram")
    return found


@layer(1470, "sliceBySize")
def slice_by_size(c: NetworkCall) -> Operand:
    """So many elements along an axis, from a place on that is data."""
    x, size = c.input(), c.integer(2)
    axis, begin = c.axis_of(c.integer(3), x.rank), c.late_number(c.input(1), "begin", "its begin")
    return slice_axes(c, x, [axis], [begin], [begin + size if size > 0 else FAR], [1])


@layer(1005, "slidingWindows")
def sliding_windows(c: NetworkCall) -> Operand:
    """Windows along an axis, each with its elements in a new dimension behind it."""
    return windows_along(c, c.input(), c.integer(1), c.integer(2), c.integer(3, 1))


@layer(965, "reverseSeq")
def reverse_sequences(c: NetworkCall) -> Operand:
    """Sequences backwards, each up to its length."""
    x = c.input()
    batch, time = (c.axis_of(c.integer(n), x.rank) for n in (1, 2))
    order = [time, batch, *[d for d in range(x.rank) if d not in (time, batch)]]
    turned = reverse(c, c.transpose(x, order), c.cast(c.input(1), i64))
    return c.transpose(turned, [order.index(d) for d in range(x.rank)])


def _updates(c: NetworkCall, mode: int) -> tuple[Operand, Operand, str]:
    """Returns the indices, the updates, and how these are combined with the elements there."""
    if not 0 <= mode < len(_MODES):
        c.fail(f"its mode {mode} is not supported", AGAIN)
    updates, reduction = combined(c, _MODES[mode].removeprefix("SCATTER_").lower(), c.input(2))
    return c.cast(c.input(1), i64), updates, reduction


@layer(935, "scatter")
def scatter(c: NetworkCall) -> Operand:
    """Slices written, or added, at indices along an axis."""
    x, (at, updates, reduction) = c.input(), _updates(c, c.params.integer(2))
    axis, n = c.axis_of(c.integer(1), x.rank), at.rank
    first = [*range(axis, axis + n), *range(axis), *range(axis + n, updates.rank)]
    tuples = c.reshape(at, [*at.shape, 1])
    return c.add("scatter_nd", x, tuples, c.transpose(updates, first), reduction=reduction, axes=(axis,))


@layer(945, "scatterND")
def scatter_nd(c: NetworkCall) -> Operand:
    """Slices written, or added, at tuples of indices."""
    at, updates, reduction = _updates(c, c.params.integer(1))
    return c.add("scatter_nd", c.input(), at, updates, reduction=reduction)


@layer(954, "scatterAlongAxis")
def scatter_along_axis(c: NetworkCall) -> Operand:
    """Elements written, or added, at their place, but at the index along an axis."""
    x, (at, updates, reduction) = c.input(), _updates(c, c.params.integer(2))
    return c.add("scatter_elements", x, at, updates, axis=c.axis_of(c.integer(1), x.rank), reduction=reduction)


@layer(1313, "whereNonZero")
def where_non_zero(c: NetworkCall) -> Operand:
    """The places of the elements that are not zero, a row for each."""
    return c.cast(c.transpose(non_zero(c, c.input()), [1, 0]), f32)


@layer(1400, "NonMaximumSuppression")
def non_maximum_suppression(c: NetworkCall) -> tuple[Operand, ...]:
    """Boxes (center x, y, width, height), the likeliest first, without those that overlap a better one; -1 behind the last."""
    if len(c.inputs) > 2:
        c.fail("limits that a run computes are not supported", "convert the model to an mlprogram")
    p, (boxes, scores) = c.params, (c.input(0, rank=3), c.input(1, rank=3))
    limits = c.integer(3), p.number(1), p.number(2)
    made, places, count = chosen_boxes(c, boxes, scores, limits, by_class=p.flag(4))
    return (*made, c.cast(places, f32), c.cast(c.reshape(count, [1]), f32))[: c.outputs]
