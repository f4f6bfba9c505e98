"""Gathering and scattering by tensors of indices and of truth values."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from weft.frontends.torch.call import Call
from weft.frontends.torch.registry import translates
from weft.graph.builder import Operand, Results, total
from weft.graph.composites import selection
from weft.graph.composites.sequences import stack
from weft.graph.composites.slicing import slice_axes
from weft.ir import ONE, Expr
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
    if dims[-1] - dims[0] != len(dims) - 1:
        c.fail("indices of dimensions that are not next to one another are not supported", "transpose in the module")
    others = [d for d in range(x.rank) if d not in dims]
    places = _stacked(c, [i for _, i in found])
    count, before = places.rank - 1, dims[0]
    shape = [*x.shape[:before], *places.shape[:-1], *x.shape[dims[-1] + 1 :]]
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


@translates("scatter.src", "scatter.value", "scatter_add")
def scatter(c: Call) -> Results:
    """The tensor with single elements at indices along a dimension replaced, or added to."""
    adds = "src" in c.arguments and c.source.startswith("aten.scatter_add")
    return _scattered(c, c.tensor(), _updates(c), "add" if adds else "none")


@translates("scatter_reduce.two")
def scatter_reduce(c: Call) -> Results:
    """The tensor with single elements at indices combined with others; without their own values, if asked for."""
    x, how, updates = c.tensor(), str(c.value("reduce")), _updates(c)
    if how == "mean":
        c.fail("the mean of scattered elements is not supported", "divide their sum by their number in the module")
    if not c.value("include_self", True):
        x = _scattered(c, x, _neutral(c, how, updates), "none")
    return _scattered(c, x, updates, _REDUCTIONS[how])


@translates("nonzero")
def nonzero(c: Call) -> Results:
    """The indices of the elements that are not zero, a row for each."""
    return c.transpose(selection.non_zero(c, c.tensor()), [1, 0])


@translates("masked_select")
def masked_select(c: Call) -> Results:
    """The elements where a mask holds, which is broadcast with the tensor, as a vector."""
    x, mask = c.tensor(), c.tensor("mask")
    shape = _common_shape([x, mask])
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
    before = c.add("cumsum", flat, axis=0, exclusive=True, reverse=False)
    places = c.add("minimum", before, c.add("sub", c.size(count), c.scalar(1, i64)))
    taken = c.add("gather", c.reshape(source, [count]), places, axis=0)
    return c.add("where", mask, c.reshape(taken, x.shape), x)


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
    shape = _common_shape(indices)
    parts = [c.add("expand", c.cast(i, i64), shape=shape) for i in indices]
    return stack(c, parts, len(shape))


def _common_shape(tensors: Sequence[Operand]) -> tuple[Expr, ...]:
    """Returns the shape that tensors broadcast to."""
    rank = max(x.rank for x in tensors)
    tall = [[ONE] * (rank - x.rank) + list(x.shape) for x in tensors]
    return tuple([next((s for s in sizes if s is not ONE), ONE) for sizes in zip(*tall, strict=True)])


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
    """Returns *x* with one value where a mask holds, or with several in order."""
    if len(found) == 1 and found[0][1].rank == x.rank and values.rank == 1 and values.shape[0] is not ONE and not adds:
        return _filled_in_order(c, x, found[0][1], values)
    if len(found) > 1 or (values.rank > 0 and not (values.rank == 1 and str(values.shape[0]) == "1")):
        c.fail("several values where a mask holds are not supported", "use where in the module")
    d, mask = found[0]
    value = c.reshape(values, [])
    holds = c.reshape(mask, [*[1] * d, *mask.shape, *[1] * (x.rank - d - mask.rank)])
    return c.add("where", holds, c.add("add", x, value) if adds else value, x)


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


def _scattered(c: Call, x: Operand, updates: Operand, reduction: str) -> Operand:
    places, whole = _at_least_vector(c, c.tensor("index")), _at_least_vector(c, x)
    axis = c.axis("dim", whole.rank)
    made = c.add("scatter_elements", whole, c.cast(places, i64), updates, axis=axis, reduction=reduction)
    return c.reshape(made, x.shape)


def _neutral(c: Call, how: str, like: Operand) -> Operand:
    """Returns what changes nothing in a reduction, in the shape of *like*."""
    if how in ("amax", "amin") and not like.dtype.is_float:
        c.fail("extremes of scattered integers without the tensor's own are not supported", "use include_self=True")
    values = {"sum": 0, "prod": 1, "amax": float("-inf"), "amin": float("inf")}
    return c.add("full", shape=like.shape, value=values[how], dtype=like.dtype)
