"""Gathers and slices whose places are data. Windows that would reach beyond the tensor are moved inside."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

from weft.frontends.jax.call import AGAIN, Call
from weft.frontends.jax.ops.window_indices import Windows, check, fit, stacked, starts, tuples
from weft.frontends.jax.registry import translates
from weft.graph import Value
from weft.graph.builder import CompileTimeConstant, Operand
from weft.graph.composites.slicing import slice_axes
from weft.graph.composites.window_updates import clamped, write_window
from weft.ir import Expr
from weft.support.dtypes import i64


@translates("gather", "dynamic_gather")
def gather(c: Call) -> Operand:
    """Windows at tuples of indices."""
    x, indices = c.operand(0), c.operand(1)
    numbers: Any = c.value("dimension_numbers")
    if not isinstance(numbers, dict):
        c.fail(f"its dimension numbers are {numbers!r}", AGAIN)

    def dims(name: str) -> list[int]:
        return c.integers_of(numbers.get(name, []), name)

    sizes = (
        c.ints("slice_sizes") if len(c.operands) == 2 else c.late_sizes(c.operand(2), "size", "the shape of a window")
    )
    w = Windows(
        sizes,
        dims("offset_dims"),
        dims("collapsed_slice_dims"),
        dims("start_index_map"),
        dims("operand_batching_dims"),
        dims("start_indices_batching_dims"),
        int(numbers.get("index_vector_dim", 0)),
    )
    check(c, w, x, indices, len(c.result().shape))
    return gathered(c, w, x, indices)


def gathered(c: Call, w: Windows, x: Operand, indices: Operand) -> Operand:
    """Returns windows of *x*; those that would reach beyond it are moved inside."""
    operand = c.extents(x)
    firsts, shape = starts(c, w, indices)
    limits = [operand[d] - w.sizes[d] for d in w.indexed]
    firsts = [clamped(c, v, limits[n]) if n < len(limits) else v for n, v in enumerate(firsts)]
    columns, named, partly = tuples(c, w, firsts, shape, operand)
    whole = [d for d in range(x.rank) if d not in named]
    turned = c.transpose(x, [*named, *whole])
    if len(columns) == 1:
        made = c.add("gather", turned, columns[0], axis=0)
    else:
        made = c.add("gather_nd", turned, stacked(c, columns), batch_dims=0) if columns else turned
    return _in_order(c, w, made, len(shape), [*partly, *whole])


def _in_order(c: Call, w: Windows, x: Operand, lead: int, dims: Sequence[int]) -> Operand:
    """Returns windows [*indices, *dims] with their dimensions where the result has them."""
    placed = dict(zip(w.inner, w.kept(), strict=True))
    rest = iter(range(lead))
    perm = [lead + list(dims).index(placed[d]) if d in placed else next(rest) for d in range(x.rank)]
    return c.transpose(x, perm)


@translates("dynamic_slice")
def dynamic_slice(c: Call) -> Operand:
    """A window whose place is data; dimensions of known places are sliced first."""
    x, sizes = c.operand(0), c.ints("sizes", "slice_sizes")
    places, extents = c.operands[1:], c.extents(x)
    _check_window(c, x, sizes, places)
    for d in range(x.rank):
        if sizes[d] != extents[d]:
            x = _along(c, x, d, sizes[d], places[d], extents[d] - sizes[d])
    return x


@translates("real_dynamic_slice")
def real_dynamic_slice(c: Call) -> Operand:
    """Every so many elements between two places, which are operands; or a window of a known size from a place on."""
    x, sizes = c.operand(0), _added_sizes(c)
    if sizes is not None:
        return _window_at(c, x, c.operand(1), sizes)
    starts, ends, steps = (c.late_sizes(c.operand(k), n, "the bounds of a slice") for k, n in _BOUNDS)
    if not len(starts) == len(ends) == len(steps) == x.rank or not all(isinstance(s, int) and s > 0 for s in steps):
        c.fail(f"its bounds {starts}, {ends}, {steps} are not those of {x!r}", AGAIN)
    return slice_axes(c, x, range(x.rank), starts, ends, [int(str(s)) for s in steps])


_BOUNDS: Final = ((1, "start"), (2, "limit"), (3, "stride"))


def _added_sizes(c: Call) -> list[int | Expr] | None:
    """Returns the sizes of a slice whose ends are its starts, which a run computes, plus these sizes; None for other slices.

    JAX writes slices of symbolic sizes so.
    """
    start, limit = c.operand(1), c.operand(2)
    node = limit.producer if isinstance(limit, Value) and isinstance(start, Value) else None
    if node is None or node.operator.name != "add" or start not in node.inputs:
        return None
    rest = [v for v in node.inputs if v is not start]
    sizes = c.late_sizes(rest[0], "size", "the size of a window") if len(rest) == 1 and rest[0] is not None else []
    return sizes if len(sizes) == c.operand(0).rank else None


def _window_at(c: Call, x: Operand, starts: Operand, sizes: Sequence[int | Expr]) -> Operand:
    """Returns a window of *sizes* from places on, which are those of dimensions that it has not in whole."""
    for d, (size, extent) in enumerate(zip(sizes, c.extents(x), strict=True)):
        if size != extent:
            place = c.add("slice", starts, starts=(d,), ends=(d + 1,), axes=(0,), steps=(1,))
            x = _along(c, x, d, size, place, extent - size)
    return x


def _along(c: Call, x: Operand, d: int, size: int | Expr, place: Operand, most: int | Expr) -> Operand:
    """Returns *size* elements of *x* along a dimension, from a place on."""
    first = clamped(c, c.reshape(c.cast(place, i64), ()), most)
    if isinstance(first, CompileTimeConstant) and not first.symbolic:
        at = int(first.array)
        return c.add("slice", x, starts=(at,), ends=(at + size,), axes=(d,), steps=(1,))
    if size == 1:
        return c.reshape(c.add("element_at", x, first, axis=d), [*x.shape[:d], 1, *x.shape[d + 1 :]])
    return c.add("gather", x, c.add("add", c.add("range", start=0, size=size, step=1), first), axis=d)


def _check_window(c: Call, x: Operand, sizes: Sequence[int | Expr], places: Sequence[Operand]) -> None:
    if not len(sizes) == len(places) == x.rank or not fit(sizes, c.extents(x)):
        c.fail(f"a window of {list(sizes)} at {len(places)} places is none of {x!r}", AGAIN)


@translates("dynamic_update_slice")
def dynamic_update_slice(c: Call) -> Operand:
    """A tensor with a window written over at a place that is data."""
    x, update = c.operand(0), c.operand(1)
    places = c.operands[2:]
    _check_window(c, x, c.extents(update), places)
    at = [c.reshape(c.cast(p, i64), ()) for p in places]
    return write_window(c, x, update, at, c.extents(update), c.extents(x))
