"""Gathering and scattering by tensors of indices and of truth values."""

from __future__ import annotations

import math
from typing import Any, Final

import numpy as np

from weft.frontends.torch.call import Call, common_shape
from weft.frontends.torch.ops.movement import places_by_strides
from weft.frontends.torch.registry import translates
from weft.graph.builder import CompileTimeConstant, Operand, Results, static_sizes, total
from weft.graph.composites import selection
from weft.graph.composites.sequences import stack
from weft.graph.composites.slicing import FAR, slice_axes
from weft.ir import Const
from weft.support.dtypes import bool_, i64

_REDUCTIONS: Final = {"sum": "add", "add": "add", "prod": "mul", "multiply": "mul", "amax": "max", "amin": "min"}
"""Weft's names for how scattered elements are combined."""


@translates("index.Tensor")
def index(c: Call) -> Results:
    """The elements at tensors of indices, one for each of some dimensions, broadcast together; or where a mask holds."""
    x, found = c.tensor(), _indices(c)
    masks = [(d, i) for d, i in found if i.dtype is bool_]
    if masks:
        return _masked(c, x, found)
    if len(found) == 1:
        d, places = found[0]
        return c.add("gather", x, c.cast(places, i64), axis=d)
    dims = [d for d, _ in found]
    others = [d for d in range(x.rank) if d not in dims]
    places = _stacked(c, [i for _, i in found])
    made = c.add("gather_nd", c.transpose(x, [*dims, *others]), places, batch_dims=0)
    if dims[-1] - dims[0] != len(dims) - 1:
        return made  # the dimensions that are indexed are not next to one another: theirs come first
    count, before = places.rank - 1, dims[0]
    order = [*range(count, count + before), *range(count), *range(count + before, made.rank)]
    return c.transpose(made, order)


@translates("index_put")
def index_put(c: Call) -> Results:
    """The tensor with elements at indices replaced, or added to."""
    x, found = c.tensor(), _indices(c)
    values, adds = c.tensor("values"), bool(c.value("accumulate", False))
    if any(i.dtype is bool_ for _, i in found):
        return _put_where(c, x, found, values, adds=adds)
    dims = [d for d, _ in found]
    others = [d for d in range(x.rank) if d not in dims]
    places = _stacked(c, [i for _, i in found])
    are_together = dims[-1] - dims[0] == len(dims) - 1
    count, before = places.rank - 1, dims[0] if are_together else 0  # else the dimensions of the indices come first
    kept = [x.shape[d] for d in others]
    shape = [*kept[:before], *places.shape[:-1], *kept[before:]]
    whole = c.add("expand", values, shape=tuple(shape))
    updates = c.transpose(whole, [*range(before, before + count), *range(before), *range(before + count, len(shape))])
    order = [*dims, *others]
    made = c.add("scatter_nd", c.transpose(x, order), places, updates, reduction="add" if adds else "none")
    return c.transpose(made, [order.index(d) for d in range(x.rank)])


@translates("gather")
def gather(c: Call) -> Results:
    """Single elements at indices along a dimension."""
    x, places = _at_least_vector(c, c.tensor()), _at_least_vector(c, c.tensor("index"))
    made = c.add("gather_elements", x, c.cast(places, i64), axis=c.axis("dim", x.rank))
    return c.reshape(made, c.tensor("index").shape)


@translates("scatter.src", "scatter.value", "scatter.reduce", "scatter.value_reduce", "scatter_add")
def scatter(c: Call) -> Results:
    """The tensor with single elements at indices along a dimension replaced, added to, or multiplied."""
    how = "add" if c.source.startswith("aten.scatter_add") else _REDUCTIONS.get(str(c.value("reduce")), "none")
    return _scattered(c, c.tensor(), c.tensor("index"), _updates(c), how)


@translates("scatter_reduce.two")
def scatter_reduce(c: Call) -> Results:
    """The tensor with single elements at indices combined with others; without their own values, if asked for."""
    return _combined(c, c.tensor("index"), _updates(c))


@translates("index_reduce")
def index_reduce(c: Call) -> Results:
    """The tensor with slices at indices of a dimension combined with others."""
    source = _at_least_vector(c, c.tensor("source"))
    axis = c.axis("dim", source.rank)
    shape = [source.shape[d] if d == axis else 1 for d in range(source.rank)]
    return _combined(c, c.add("expand", c.reshape(c.tensor("index"), shape), shape=source.shape), source)


def _combined(c: Call, index: Operand, updates: Operand) -> Operand:
    """Returns the tensor with *updates*, one for each element of *index*, combined with its own, as the arguments say."""
    x, how, keeps = c.tensor(), str(c.value("reduce")), bool(c.value("include_self", True))
    if how == "mean":
        return _mean(c, x, index, updates, keeps=keeps)
    if not keeps:
        x = _scattered(c, x, index, _neutral(c, how, updates), "none")
    return _scattered(c, x, index, updates, _REDUCTIONS[how])


def _mean(c: Call, x: Operand, index: Operand, updates: Operand, *, keeps: bool) -> Operand:
    zeros, ones = (c.add("full", shape=updates.shape, value=v, dtype=updates.dtype) for v in (0, 1))
    own = c.add("full", shape=x.shape, value=1, dtype=x.dtype)
    if not keeps:
        x, own = (_scattered(c, v, index, zeros, "none") for v in (x, own))
    total, count = _scattered(c, x, index, updates, "add"), _scattered(c, own, index, ones, "add")
    if x.dtype.is_float:
        return c.add("div", total, count)
    rest = c.add("less", c.add("trunc_mod", total, count), c.scalar(0, x.dtype))
    return c.add("sub", c.add("div", total, count), c.cast(rest, x.dtype))  # rounded down


@translates("as_strided_scatter", "prims.as_strided_scatter.default")
def as_strided_scatter(c: Call) -> Results:
    """The tensor with others at places in its memory, that strides tell."""
    x = c.tensor("input" if "input" in c.arguments else "self")
    sizes, strides, offset = c.sizes("size"), c.sizes("stride"), c.value("storage_offset", 0)
    if not all(isinstance(v, int) for v in (*sizes, *strides, offset)):
        return _put_at_places(c, x, places_by_strides(c, sizes, strides, offset))
    places = np.full((), offset, np.int64)
    for size, stride in zip(sizes, strides, strict=True):
        places = places[..., None] + np.arange(size, dtype=np.int64) * stride
    return _put_at(c, x, places)


@translates("select_scatter")
def select_scatter(c: Call) -> Results:
    """The tensor with another in the place of the elements at one index along a dimension."""
    x, k = c.tensor(), c.value("index")
    d = c.axis("dim", x.rank)
    part = c.reshape(c.cast(c.tensor("src"), x.dtype), [*x.shape[:d], 1, *x.shape[d + 1 :]])
    at = c.size(k if isinstance(k, int) and k >= 0 else k + x.shape[d])
    return c.add("where", c.add("equal", _along(c, x, d), at), part, x)


@translates("slice_scatter")
def slice_scatter(c: Call) -> Results:
    """The tensor with another in the place of a range along a dimension."""
    x, step = c.tensor(), c.integer("step", 1)
    d = c.axis("dim", x.rank)
    part, start, end = c.cast(c.tensor("src"), x.dtype), c.value("start"), c.value("end")
    sizes = static_sizes([x.shape[d]])
    if sizes is None or not all(v is None or isinstance(v, int) for v in (start, end)):
        return _with_range(c, x, part, d, (0 if start is None else start, 2**62 if end is None else end, step))
    first, behind, _ = slice(start, end, step).indices(sizes[0])
    places = np.arange(sizes[0])
    inside = (places >= first) & (places < behind) & ((places - first) % step == 0)
    if not inside.any() or inside.all():
        return part if inside.any() else x
    taken = np.clip((places - first) // step, 0, len(range(first, behind, step)) - 1)
    spread = c.add("gather", part, CompileTimeConstant(taken.astype(np.int64)), axis=d)
    mask = CompileTimeConstant(inside.reshape([-1 if k == d else 1 for k in range(x.rank)]))
    return c.add("where", mask, spread, x)


def _along(c: Call, x: Operand, axis: int) -> Operand:
    """Returns the indices along a dimension of *x*, in a shape that is broadcast with it."""
    places = c.cast(c.add("range", start=0, size=x.shape[axis], step=1), i64)
    return c.reshape(places, [x.shape[axis] if k == axis else 1 for k in range(x.rank)])


def _with_range(c: Call, x: Operand, part: Operand, axis: int, places: tuple[Any, Any, int]) -> Operand:
    """Returns *x* with *part* in the place of a range, of which a bound or the size is symbolic."""
    start, end, step = places
    if (start, step) == (0, 1) and isinstance(end, int) and end >= FAR:
        return part
    if step != 1:
        c.fail(f"every {step}th element of {x!r}, of symbolic size, can't be replaced", "give it numbers in `shapes`")
    before = slice_axes(c, x, [axis], [0], [start], [1])
    behind = [slice_axes(c, x, [axis], [end], [2**62], [1])] if not isinstance(end, int) or end < FAR else []
    return c.add("concat", before, part, *behind, axis=axis)


@translates("diagonal_scatter")
def diagonal_scatter(c: Call) -> Results:
    """The tensor with another in the place of a diagonal."""
    x = c.tensor()
    sizes = static_sizes(x.shape)
    if sizes is None:
        c.fail(f"a diagonal of {x!r}, of symbolic size, is not supported", "give it numbers in `shapes`")
    numbers = np.arange(math.prod(sizes), dtype=np.int64).reshape(sizes)
    return _put_at(c, x, np.diagonal(numbers, c.integer("offset", 0), c.integer("dim1", 0), c.integer("dim2", 1)))


def _put_at(c: Call, x: Operand, places: np.ndarray[Any, np.dtype[np.int64]]) -> Operand:
    """Returns *x* with the elements of the argument `src` at *places* of its flat form."""
    return _put_at_places(c, x, CompileTimeConstant(np.ascontiguousarray(places)))


def _put_at_places(c: Call, x: Operand, places: Operand) -> Operand:
    flat, count = c.reshape(x, [total(x.shape)]), total(places.shape)
    updates = c.cast(c.reshape(c.tensor("src"), [count]), x.dtype)
    made = c.add("scatter_elements", flat, c.reshape(places, [count]), updates, axis=0, reduction="none")
    return c.reshape(made, x.shape)


@translates("unique_consecutive")
def unique_consecutive(c: Call) -> Results:
    """The elements that differ from the one before, for each element which of these it is, and how often each is there."""
    if c.arguments.get("dim") is not None:
        c.fail("unique slices along a dimension are not supported", "call it without `dim`")
    x = c.tensor()
    size = total(x.shape)
    flat = c.reshape(x, [size])
    if static_sizes(flat.shape) in (None, [0]):
        c.fail(f"unique elements of {x!r}, of no or of symbolic size, are not supported", "give it numbers in `shapes`")
    last = c.add("slice", flat, starts=(0,), ends=(-1,), axes=(0,), steps=(1,))
    rest = c.add("slice", flat, starts=(1,), ends=(2**62,), axes=(0,), steps=(1,))
    changed = c.add("logical_not", c.add("equal", rest, last))
    first = c.add("concat", c.add("full", shape=(1,), value=True, dtype=bool_), changed, axis=0)
    number = c.add("cumsum", c.cast(first, i64), axis=0, exclusive=False, reverse=False)
    which = c.reshape(c.add("sub", number, c.scalar(1, i64)), x.shape)
    places = selection.compress(c, c.cast(c.add("range", start=0, size=size, step=1), i64), first, 0)
    made = c.add("gather", flat, places, axis=0)
    ends = c.add("slice", places, starts=(1,), ends=(2**62,), axes=(0,), steps=(1,))
    counts = c.add("sub", c.add("concat", ends, c.vector([size]), axis=0), places)
    nothing = c.add("full", shape=(0,), value=0, dtype=i64)
    told = [
        v if c.value(name, False) else nothing for name, v in (("return_inverse", which), ("return_counts", counts))
    ]
    return made, *told


@translates("nonzero")
def nonzero(c: Call) -> Results:
    """The indices of the elements that are not zero, a row for each."""
    return c.transpose(selection.non_zero(c, c.tensor()), [1, 0])


@translates("masked_select")
def masked_select(c: Call) -> Results:
    """The elements where a mask holds, which is broadcast with the tensor, as a vector."""
    x, mask = c.tensor(), c.tensor("mask")
    shape = common_shape([x.shape, mask.shape])
    x, mask = c.add("expand", x, shape=shape), c.add("expand", mask, shape=shape)
    flat = [total(shape)]
    return selection.compress(c, c.reshape(x, flat), c.reshape(mask, flat), 0)


@translates("masked_scatter")
def masked_scatter(c: Call) -> Results:
    """The tensor with the first elements of another where a mask holds, in order."""
    x = c.tensor()
    return _filled_in_order(c, x, c.add("expand", c.tensor("mask"), shape=x.shape), c.tensor("source"))


def _filled_in_order(c: Call, x: Operand, mask: Operand, source: Operand) -> Operand:
    """Returns *x* with the first elements of *source* where *mask*, of the same shape, holds: as many as hold before each."""
    count = total(source.shape)
    if count == 0:
        return x
    flat = c.cast(c.reshape(mask, [total(x.shape)]), i64)
    taken = _taken_in_order(c, c.reshape(source, [count]), 0, flat)
    return c.add("where", mask, c.reshape(taken, x.shape), x)


def _taken_in_order(c: Call, source: Operand, axis: int, flags: Operand) -> Operand:
    """Returns for each of *flags*, integers, the slice of *source* along *axis* that it takes: as many hold before it.

    Those that do not hold take any. There may be no slices at all where a call tells their number, so that one is added.
    """
    count = source.shape[axis]
    if not isinstance(count, Const):
        source = c.add("pad", source, pads=(*[0] * (source.rank + axis), 1, *[0] * (source.rank - axis - 1)), value=0)
    before = c.add("cumsum", flags, axis=0, exclusive=True, reverse=False)
    last = c.size(source.shape[axis] - 1)
    return c.add("gather", source, c.add("minimum", before, last), axis=axis)


def _indices(c: Call) -> list[tuple[int, Operand]]:
    """Returns the dimensions that are indexed, each with its indices; a mask is of as many dimensions as it has."""
    found, d = list[tuple[int, Operand]](), 0
    for i in c.arguments["indices"]:
        if i is not None:
            found.append((d, i))
        d += i.rank if i is not None and i.dtype is bool_ else 1
    return found


def _stacked(c: Call, indices: list[Operand]) -> Operand:
    """Returns indices [..., k], of *k* dimensions, broadcast together."""
    shape = common_shape([i.shape for i in indices])
    parts = [c.add("expand", c.cast(i, i64), shape=shape) for i in indices]
    return stack(c, parts, len(shape))


def _flat(c: Call, x: Operand, d: int, mask: Operand) -> tuple[Operand, Operand]:
    """Returns a tensor and a mask of its dimensions from *d* on, those as one."""
    after = d + mask.rank
    one = [*x.shape[:d], total(x.shape[d:after]), *x.shape[after:]]
    return c.reshape(x, one), c.reshape(mask, [total(mask.shape)])


def _masked(c: Call, x: Operand, found: list[tuple[int, Operand]]) -> Operand:
    if len(found) > 1:
        c.fail("a mask beside other indices is not supported", "index by one after the other in the module")
    d, mask = found[0]
    if mask.rank == 0:
        c.fail("a mask of no dimensions is not supported", "use where in the module")
    flat, holds = _flat(c, x, d, mask)
    return selection.compress(c, flat, holds, d)


def _put_where(c: Call, x: Operand, found: list[tuple[int, Operand]], values: Operand, *, adds: bool) -> Operand:
    """Returns *x* with values where a mask of some of its dimensions holds, in order, replaced or added to."""
    if len(found) > 1:
        c.fail("a mask beside other indices is not supported", "index by one after the other in the module")
    d, mask = found[0]
    flat, holds = _flat(c, x, d, mask)
    placed = c.reshape(holds, [*holds.shape, *[1] * (flat.rank - d - 1)])
    whole = c.reshape(values, [*[1] * (flat.rank - values.rank), *values.shape])
    count = total(whole.shape[d : d + 1])
    if count == 0:
        return x
    taken = _taken_in_order(c, whole, d, c.cast(holds, i64))
    taken = c.add("add", flat, taken) if adds else c.add("expand", taken, shape=flat.shape)
    return c.reshape(c.add("where", placed, taken, flat), x.shape)


def _at_least_vector(c: Call, x: Operand) -> Operand:
    return c.reshape(x, [1]) if x.rank == 0 else x


def _updates(c: Call) -> Operand:
    """Returns the elements to scatter, one for each index."""
    places = _at_least_vector(c, c.tensor("index"))
    source = c.optional("src")
    if source is None:
        return c.add("full", shape=places.shape, value=c.value("value"), dtype=c.dtype)
    source = _at_least_vector(c, source)
    axes = list(range(source.rank))
    return slice_axes(c, source, axes, [0] * source.rank, list(places.shape), [1] * source.rank)


def _scattered(c: Call, x: Operand, index: Operand, updates: Operand, reduction: str) -> Operand:
    places, whole = _at_least_vector(c, index), _at_least_vector(c, x)
    axis = c.axis("dim", whole.rank)
    made = c.add("scatter_elements", whole, c.cast(places, i64), updates, axis=axis, reduction=reduction)
    return c.reshape(made, x.shape)


def _neutral(c: Call, how: str, like: Operand) -> Operand:
    """Returns the identity of a reduction, in the shape of *like*."""
    if how in ("amax", "amin") and not like.dtype.is_float:
        c.fail("extremes of scattered integers without the tensor's own are not supported", "use include_self=True")
    values = {"sum": 0, "prod": 1, "amax": float("-inf"), "amin": float("inf")}
    return c.add("full", shape=like.shape, value=values[how], dtype=like.dtype)
