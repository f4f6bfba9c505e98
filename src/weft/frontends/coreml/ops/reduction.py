"""Reductions, places of extremes, sorting and running sums."""

from __future__ import annotations

import numpy as np

from weft.frontends.coreml.call import Call
from weft.frontends.coreml.registry import Translation, translates
from weft.graph.builder import Operand
from weft.graph.composites.ordering import top_k
from weft.support.dtypes import i32


def _reduction(op: str) -> Translation:
    def translate(c: Call) -> Operand:
        x = c.operand()
        return c.add(op, x, axes=c.axes(x.rank), keepdims=c.flag("keep_dims"))

    return translate


translates("reduce_sum")(_reduction("reduce_sum"))
translates("reduce_mean")(_reduction("reduce_mean"))
translates("reduce_max")(_reduction("reduce_max"))
translates("reduce_min")(_reduction("reduce_min"))
translates("reduce_prod")(_reduction("reduce_prod"))
translates("reduce_l1_norm")(_reduction("reduce_l1"))
translates("reduce_l2_norm")(_reduction("reduce_l2"))
translates("reduce_log_sum")(_reduction("reduce_log_sum"))
translates("reduce_log_sum_exp")(_reduction("reduce_log_sum_exp"))
translates("reduce_sum_square")(_reduction("reduce_sum_square"))


def _place(op: str) -> Translation:
    def translate(c: Call) -> Operand:
        x = c.operand()
        axis = c.axis_of(c.integer("axis", -1), x.rank)
        return c.cast(c.add(op, x, axis=axis, keepdims=c.flag("keep_dims"), last=False), i32)

    return translate


translates("reduce_argmax")(_place("argmax"))
translates("reduce_argmin")(_place("argmin"))


@translates("topk")
def topk(c: Call) -> tuple[Operand, ...]:
    """The largest or smallest elements along an axis, and where they are."""
    x = c.operand()
    axis = c.axis_of(c.integer("axis", -1), x.rank)
    values, places = top_k(c, x, c.integer("k", 1), axis, largest=not c.flag("ascending"))
    return (values, c.cast(places, i32))[: len(c.types)]


@translates("argsort")
def argsort(c: Call) -> Operand:
    """The places of elements in their order, the largest first unless it is ascending."""
    x = c.operand()
    axis = c.axis_of(c.integer("axis", -1), x.rank)
    return c.cast(c.add("argsort", x, axis=axis, descending=not c.flag("ascending")), i32)


@translates("cumsum")
def cumsum(c: Call) -> Operand:
    """Running sums along an axis."""
    x = c.operand()
    axis = c.axis_of(c.integer("axis", 0), x.rank)
    return c.add("cumsum", x, axis=axis, exclusive=c.flag("exclusive"), reverse=c.flag("reverse"))


@translates("band_part")
def band_part(c: Call) -> Operand:
    """The diagonals around the main one; zero elsewhere. A negative number keeps all on that side."""
    x, lower, upper = c.operand(), c.integer("lower", -1), c.integer("upper", -1)
    x = x if lower < 0 else c.add("trilu", x, k=-lower, upper=True)
    return x if upper < 0 else c.add("trilu", x, k=upper, upper=False)


@translates("one_hot")
def one_hot(c: Call) -> Operand:
    """One value at the place that an index says, and another elsewhere."""
    values = np.array([c.number("off_value", 0), c.number("on_value", 1)]).astype(c.dtype().numpy)
    x = c.operand("indices")
    axis = c.axis_of(c.integer("axis", -1), x.rank + 1)
    return c.add("one_hot", x, c.kept_constant(values), depth=c.integer("one_hot_vector_size"), axis=axis)
