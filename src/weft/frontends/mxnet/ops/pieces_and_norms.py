"""Operators on parts of tensors, and sums along axes that are no plain reductions."""

from __future__ import annotations

from weft.frontends.mxnet.call import Call
from weft.frontends.mxnet.registry import translates
from weft.graph.builder import Operand, total
from weft.graph.composites.slicing import FAR, slice_axes, split_equally


@translates("reverse", "flip")
def reverse(c: Call) -> Operand:
    """The elements backwards along axes."""
    x = c.input()
    axes = [c.axis_of(a, x.rank) for a in c.ints("axis")]
    return slice_axes(c, x, axes, [-1] * len(axes), [-FAR] * len(axes), [-1] * len(axes))


@translates("norm")
def norm(c: Call) -> Operand:
    """The sum of absolute values, or the root of the sum of squares."""
    x, order = c.input(), c.integer("ord", 2)
    if order not in (1, 2):
        c.fail(f"its order {order} is not supported", "use 1 or 2")
    made = c.add(f"reduce_l{order}", x, axes=c.axes(x.rank), keepdims=c.flag("keepdims"))
    return c.reshape(made, [1]) if c.value("axis") is None and not made.rank else made


@translates("cumsum", "_np_cumsum")
def cumsum(c: Call) -> Operand:
    """The sum of the elements up to each along an axis; without one, of all in a row."""
    x = c.input()
    if c.value("axis") is None:
        return c.add("cumsum", c.reshape(x, [total(x.shape)]), axis=0)
    return c.add("cumsum", x, axis=c.axis_of(c.integer("axis"), x.rank))


@translates("_split_v2", "_npi_split")
def split_at(c: Call) -> tuple[Operand, ...]:
    """Parts between places along an axis, or a number of equal ones; the axis may be dropped."""
    x, sections = c.input(), c.integer("sections", 0)
    axis = c.axis_of(c.integer("axis", 0), x.rank)
    if sections:
        parts = split_equally(c, x, axis, sections)
    else:
        places = c.ints("indices", [])
        ends = [*places[1:], FAR]
        parts = tuple([slice_axes(c, x, [axis], [b], [e], [1]) for b, e in zip(places, ends, strict=True)])
    if not c.flag("squeeze_axis"):
        return parts
    return tuple([c.reshape(p, [*p.shape[:axis], *p.shape[axis + 1 :]]) for p in parts])
