"""Sorting along a dimension, and the largest elements."""

from __future__ import annotations

from weft.frontends.jax.call import AGAIN, Call
from weft.frontends.jax.ops.reducers import keys_of
from weft.frontends.jax.registry import translates
from weft.graph.builder import Operand
from weft.graph.composites import ordering
from weft.support.dtypes import bool_, u8


@translates("sort")
def sort(c: Call) -> tuple[Operand, ...]:
    """Tensors in the order that a comparison of some of them gives: by the last key first, as each sort keeps equal elements."""
    axis = c.axis_of(c.integer("dimension"), c.operand(0).rank)
    keys = keys_of(c.operation.regions[0]) if c.operation.regions else None
    if keys is None or max(k.operand for k in keys) >= len(c.operands):
        c.fail("it orders by a function that is not supported", "compare the elements by < or >")
    if any(x.shape != c.operand(0).shape for x in c.operands):
        c.fail("it sorts tensors of several shapes", AGAIN)
    order: Operand | None = None
    for key in reversed(keys):
        x = c.operands[key.operand]
        x = c.cast(x, u8) if x.dtype is bool_ else x
        now = x if order is None else c.add("gather_elements", x, order, axis=axis)
        found = c.add("argsort", now, axis=axis, descending=key.descending)
        order = found if order is None else c.add("gather_elements", order, found, axis=axis)
    return tuple([c.add("gather_elements", x, order, axis=axis) for x in c.operands])


@translates("top_k")
def top_k(c: Call) -> tuple[Operand, Operand]:
    """The largest elements along the last dimension, and where they are."""
    x = c.operand(0)
    if not x.rank:
        c.fail(f"it takes the largest elements of a number: {x!r}", AGAIN)
    values, places = ordering.top_k(c, x, c.integer("k"), x.rank - 1, largest=True)
    return values, c.cast(places, c.result_dtype(1))
