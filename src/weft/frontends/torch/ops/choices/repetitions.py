"""Numbers repeated as often as others say, and counted; how many come out, a call finds."""

from __future__ import annotations

from weft.frontends.torch.call import Call
from weft.frontends.torch.registry import translates
from weft.graph.builder import Operand, Results, total
from weft.ir import ExprLike
from weft.support.dtypes import i64


@translates("repeat_interleave.Tensor")
def repeat_interleave(c: Call) -> Results:
    """The places of a vector's elements, each as often as the element says: [2, 0, 1] gives [0, 0, 2]."""
    times = c.cast(c.tensor("repeats"), i64)
    ends = c.add("cumsum", times, axis=0, exclusive=False, reverse=False)
    given = c.value("output_size")
    whole = _unless_negative(c, times, c.add("reduce_sum", times, axes=(0,), keepdims=False))
    what = "the sum of the repetitions, none of which may be negative,"
    count: ExprLike = c.late_number(whole, "repeated", what) if given is None else given
    ended = _added_at(c, ends, c.scalar(1, i64), count + 1)  # of those that end behind the last there may be many
    before = c.add("cumsum", ended, axis=0, exclusive=False, reverse=False)
    return c.cast(c.add("slice", before, starts=(0,), ends=(-1,), axes=(0,), steps=(1,)), c.dtype)


@translates("bincount")
def bincount(c: Call) -> Results:
    """How often each number from 0 on is there, or the sum of its weights."""
    x, weights, least = c.cast(c.tensor(), i64), c.optional("weights"), c.integer("minlength", 0)
    most = c.add("reduce_max", c.add("concat", x, c.vector([least - 1]), axis=0), axes=(0,), keepdims=False)
    length = _unless_negative(c, x, c.add("add", most, c.scalar(1, i64)))
    count = c.late_number(length, "counted", "the length of counts of numbers, none of which may be negative,")
    return _added_at(c, x, c.scalar(1, c.dtype) if weights is None else c.cast(weights, c.dtype), count)


def _unless_negative(c: Call, x: Operand, count: Operand) -> Operand:
    """Returns *count*, or -1, which is no size, where an element of a vector is negative."""
    least = c.add("reduce_min", c.add("concat", x, c.vector([0]), axis=0), axes=(0,), keepdims=False)
    return c.add("where", c.add("less", least, c.scalar(0, i64)), c.scalar(-1, i64), count)


def _added_at(c: Call, places: Operand, values: Operand, count: ExprLike) -> Operand:
    """Returns *count* sums of the *values*, or of the one value, at each of the *places*."""
    zeros = c.add("full", shape=(count,), value=0, dtype=values.dtype)
    updates = c.add("expand", values, shape=(total(places.shape),))
    return c.add("scatter_elements", zeros, places, updates, axis=0, reduction="add")
