"""Operators called on tensors that order elements, choose among them by places, or take them apart."""

from __future__ import annotations

from weft.frontends.keras.call import Call
from weft.frontends.keras.registry import translates
from weft.graph.builder import Operand, static_sizes, total
from weft.graph.composites.sequences import element
from weft.graph.composites.slicing import MOST_PIECES
from weft.support.dtypes import i32, i64


@translates("ops.Sort", "ops.Argsort")
def ordered(c: Call) -> Operand:
    """The elements along a dimension in ascending order, or (Argsort) the places from which they come."""
    x = c.tensor()
    if not c.has("axis"):
        x = c.reshape(x, [total(x.shape)])
    axis = c.axis_of(c.integer("axis", -1), x.rank)
    order = c.add("argsort", x, axis=axis)
    return c.cast(order, i32) if c.layer.kind == "ops.Argsort" else c.add("gather_elements", x, order, axis=axis)


@translates("ops.TakeAlongAxis")
def take_along_axis(c: Call) -> Operand:
    """Elements along a dimension at a place for each element of a tensor."""
    x, places = c.tensors()
    if not c.has("axis"):
        x, places = (c.reshape(t, [total(t.shape)]) for t in (x, places))
    axis = c.axis_of(c.integer("axis", -1), x.rank)
    places = c.cast(places, i64)
    shape = [*x.shape[:axis], places.shape[axis], *x.shape[axis + 1 :]]
    return c.add("gather_elements", x, c.add("expand", places, shape=tuple(shape)), axis=axis)


@translates("ops.Cumprod")
def cumulative_product(c: Call) -> Operand:
    """Products of the elements up to each along a dimension."""
    x = c.tensor()
    return c.add("cumprod", x, axis=c.axis_of(c.integer("axis", -1), x.rank))


@translates("ops.Tril", "ops.Triu")
def triangle(c: Call) -> Operand:
    """Matrices with zeros above (Tril) or below a diagonal."""
    return c.add("trilu", c.tensor(), k=c.integer("k", 0), upper=c.layer.kind == "ops.Triu")


@translates("ops.Unstack")
def unstacked(c: Call) -> tuple[Operand, ...]:
    """The elements along a dimension, which is dropped."""
    x = c.tensor()
    axis = c.axis_of(c.integer("axis", 0), x.rank)
    size = static_sizes([x.shape[axis]])
    if size is None or size[0] > MOST_PIECES:
        c.fail(f"it takes {x!r} apart along a dimension of unknown size", "give it a size that is a number")
    return tuple([element(c, x, axis, k) for k in range(size[0])])
