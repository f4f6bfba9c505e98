"""Elements by their places in a flat tensor, and the places of those that are not zero."""

from __future__ import annotations

import math

from weft.frontends.torch.call import Call
from weft.frontends.torch.registry import translates
from weft.graph.builder import Results, total
from weft.graph.composites import selection
from weft.support.dtypes import i64


@translates("take")
def take(c: Call) -> Results:
    """The elements at places of the flat tensor."""
    x = c.tensor()
    return c.add("gather", c.reshape(x, [total(x.shape)]), c.cast(c.tensor("index"), i64), axis=0)


@translates("put")
def put(c: Call) -> Results:
    """The tensor with elements at places of its flat form replaced, or added to."""
    x, places, source = c.tensor(), c.tensor("index"), c.tensor("source")
    count = total(places.shape)
    made = c.add(
        "scatter_elements",
        c.reshape(x, [total(x.shape)]),
        c.cast(c.reshape(places, [count]), i64),
        c.reshape(source, [count]),
        axis=0,
        reduction="add" if c.value("accumulate", False) else "none",
    )
    return c.reshape(made, x.shape)


@translates("resize")
def resize(c: Call) -> Results:
    """As many of the first elements as another shape has; behind those that there are come zeros."""
    x, shape = c.tensor(), c.sizes("size")
    given, count = math.prod(c.sizes_of(x)), math.prod(shape)
    flat = c.reshape(x, [given])
    if count > given:
        flat = c.add("pad", flat, pads=(0, count - given), mode="constant", value=0)
    return c.reshape(c.add("slice", flat, starts=(0,), ends=(count,), axes=(0,), steps=(1,)), shape)


@translates("nonzero_static")
def nonzero_static(c: Call) -> Results:
    """The indices of the first elements that are not zero, a row for each, and behind them rows of another number."""
    x, size = c.tensor(), c.integer("size")
    room = math.prod(c.sizes_of(x))
    places, count = c.add_many("nonzero_positions", x)
    if size > room:
        places = c.add("pad", places, pads=(0, size - room), mode="constant", value=0)
    number = c.add("range", start=0, size=size, step=1)
    is_found = c.add("less", number, c.cast(count, i64))
    first = c.add("slice", places, starts=(0,), ends=(size,), axes=(0,), steps=(1,))
    first = c.add("where", is_found, c.cast(first, i64), c.scalar(0, i64))
    rows = c.add("unravel_index", first, shape=x.shape)
    return c.transpose(c.add("where", is_found, rows, c.scalar(c.integer("fill_value", -1), i64)), [1, 0])


@translates("_unique2")
def unique(c: Call) -> Results:
    """The distinct elements, in order; for each element which of these it is; and how often each is there."""
    x = c.tensor()
    found = selection.unique(c, x, None, in_order=True)
    return found.values, c.reshape(found.which, x.shape), found.counts
