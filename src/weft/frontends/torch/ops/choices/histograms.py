"""How many elements, or how much of their weights, lie between edges."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from weft.frontends.torch.call import Call
from weft.frontends.torch.registry import translates
from weft.graph.builder import Operand, Results, total
from weft.graph.composites.sequences import element
from weft.support.dtypes import bool_, i64


@translates("histogram.bin_ct")
def histogram(c: Call) -> Results:
    """The weights in each of a number of equal intervals over a range, by default that of the elements; and the edges."""
    x = c.reshape(c.tensor(), [total(c.tensor().shape)])
    edges = _equal_edges(c, x, c.integer("bins", 100), c.arguments.get("range"))
    return _counted(c, [x], [edges]), edges


@translates("histogram.bins_tensor")
def histogram_of_edges(c: Call) -> Results:
    """The weights between edges that are given; and these."""
    x, edges = c.reshape(c.tensor(), [total(c.tensor().shape)]), c.tensor("bins")
    return _counted(c, [x], [edges]), edges


@translates("_histogramdd_bin_edges")
def edges_of_many(c: Call) -> Results:
    """The edges along each dimension of points [..., dimensions]."""
    return tuple(_edges_of_points(c, _columns(c)))


@translates("_histogramdd_from_bin_cts")
def histogram_of_many(c: Call) -> Results:
    """The weights in each of the boxes of points [..., dimensions]."""
    points = _columns(c)
    return _counted(c, points, _edges_of_points(c, points))


@translates("_histogramdd_from_bin_tensors")
def histogram_of_many_edges(c: Call) -> Results:
    """The weights in each of the boxes between edges that are given."""
    return _counted(c, _columns(c), c.tensors("bins"))


def _columns(c: Call) -> list[Operand]:
    x = c.tensor()
    flat = c.reshape(x, [total(x.shape[:-1]), x.shape[-1]])
    return [element(c, flat, 1, k) for k in range(len(c.arguments["bins"]))]


def _edges_of_points(c: Call, points: Sequence[Operand]) -> list[Operand]:
    bins, bounds = c.arguments["bins"], c.arguments.get("range") or []
    return [
        _equal_edges(c, x, int(n), bounds[2 * k : 2 * k + 2]) for k, (x, n) in enumerate(zip(points, bins, strict=True))
    ]


def _equal_edges(c: Call, x: Operand, bins: int, bounds: Sequence[Any] | None) -> Operand:
    """Returns the edges of equal intervals over the elements of a vector, or between bounds."""
    low: Operand
    high: Operand
    if bounds:
        low, high = (c.scalar(v, x.dtype) for v in bounds)
    else:
        low, high = (c.add(op, x, axes=(0,), keepdims=False) for op in ("reduce_min", "reduce_max"))
    same = c.add("equal", low, high)
    half = c.scalar(0.5, x.dtype)
    low, high = c.add("where", same, c.add("sub", low, half), low), c.add("where", same, c.add("add", high, half), high)
    share = c.add("div", c.cast(c.add("range", start=0, size=bins + 1, step=1), x.dtype), c.scalar(bins, x.dtype))
    rest = c.add("sub", c.scalar(1, x.dtype), share)
    return c.add("add", c.add("mul", low, rest), c.add("mul", high, share))


def _counted(c: Call, points: Sequence[Operand], edges: Sequence[Operand]) -> Operand:
    """Returns the weights of points in the boxes between edges; the last edge of each dimension belongs to its last interval."""
    sizes = [c.sizes_of(e)[0] - 1 for e in edges]
    place: Operand = c.scalar(0, i64)
    inside: Operand = c.scalar(True, bool_)
    for x, e, size in zip(points, edges, sizes, strict=True):
        k, within = _interval(c, x, e, size)
        place = c.add("add", c.add("mul", place, c.scalar(size, i64)), k)
        inside = c.add("logical_and", inside, within)
    weight = c.optional("weight")
    given = c.scalar(1, c.dtype) if weight is None else c.reshape(weight, [total(weight.shape)])
    given = c.add("where", inside, given, c.scalar(0, c.dtype))
    boxes = c.add("range", start=0, size=math.prod(sizes), step=1)
    hits = c.add("equal", c.reshape(boxes, [math.prod(sizes), 1]), place)
    made = c.add("reduce_sum", c.add("where", hits, given, c.scalar(0, c.dtype)), axes=(1,), keepdims=False)
    made = c.reshape(made, sizes)
    return _density(c, made, edges) if c.value("density", False) else made


def _interval(c: Call, x: Operand, edges: Operand, size: int) -> tuple[Operand, Operand]:
    """Returns which of *size* intervals each element is in, and whether it is in one."""
    before = c.cast(c.add("less_equal", edges, c.reshape(x, [*x.shape, 1])), i64)
    number = c.add("sub", c.add("reduce_sum", before, axes=(1,), keepdims=False), c.scalar(1, i64))
    first, last = element(c, edges, 0, 0), element(c, edges, 0, size)
    within = c.add("logical_and", c.add("less_equal", first, x), c.add("less_equal", x, last))
    return c.add("minimum", number, c.scalar(size - 1, i64)), within


def _density(c: Call, weights: Operand, edges: Sequence[Operand]) -> Operand:
    """Returns weights divided by their sum, and by the sizes of the boxes."""
    made = c.add("div", weights, c.add("reduce_sum", weights, axes=tuple(range(weights.rank)), keepdims=True))
    for d, e in enumerate(edges):
        size = int(c.sizes_of(e)[0])
        low, high = (c.add("slice", e, starts=(k,), ends=(k + size - 1,), axes=(0,), steps=(1,)) for k in (0, 1))
        shape = [1] * weights.rank
        shape[d] = size - 1
        made = c.add("div", made, c.reshape(c.add("sub", high, low), shape))
    return made
