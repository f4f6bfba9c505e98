"""Reductions of segments, which lie one after another along a dimension."""

from __future__ import annotations

import math
from typing import Any, Final

from weft.frontends.torch.call import Call
from weft.frontends.torch.registry import translates
from weft.graph.builder import Operand, Results, total
from weft.support.dtypes import i64

_REDUCTIONS: Final = {
    "sum": ("add", 0.0),
    "mean": ("add", 0.0),
    "prod": ("mul", 1.0),
    "max": ("max", -math.inf),
    "min": ("min", math.inf),
}
"""How elements of a segment are combined, and their initial value unless a call has one."""


@translates("segment_reduce")
def segment_reduce(c: Call) -> Results:
    """The sum, mean, product or extreme of each segment, told by their lengths or by where they begin and the last ends."""
    x, how, initial = c.tensor("data"), str(c.value("reduce")), c.value("initial")
    if how not in _REDUCTIONS or c.optional("indices") is not None:
        c.fail(f"the reduction {how!r} of segments is not supported", "give lengths or offsets")
    axis = c.axis("axis", x.rank)
    lead, size, rest = total(x.shape[:axis]), x.shape[axis], total(x.shape[axis + 1 :])
    rows = c.reshape(x, [lead, size, rest])
    ends, lengths, first = _segments(c, lead)
    count = lengths.shape[1]
    places = c.reshape(_segment_of_each(c, size, ends, first), [lead, size, 1])
    combine, neutral = _REDUCTIONS[how]
    start = neutral if initial is None else float(initial)
    target = c.add("full", shape=(lead, count + 1, rest), value=start, dtype=x.dtype)
    places = c.add("expand", places, shape=rows.shape)
    made = c.add("scatter_elements", target, places, rows, axis=1, reduction=combine)
    made = c.add("slice", made, starts=(0,), ends=(-1,), axes=(1,), steps=(1,))
    if how == "mean":
        made = _mean(c, made, c.cast(c.reshape(lengths, [lead, count, 1]), x.dtype), is_given=initial is not None)
    return c.reshape(made, [*x.shape[:axis], count, *x.shape[axis + 1 :]])


def _segments(c: Call, lead: Any) -> tuple[Operand, Operand, Operand]:
    """Returns where segments end, how long they are, and where the first begins: of [lead, count], or [lead, 1]."""
    given = c.optional("lengths")
    if given is not None:
        lengths = c.cast(c.reshape(given, [lead, given.shape[-1]]), i64)
        first = c.add("full", shape=(lead, 1), value=0, dtype=i64)
        return c.add("cumsum", lengths, axis=1, exclusive=False, reverse=False), lengths, first
    offsets = c.tensor("offsets")
    offsets = c.cast(c.reshape(offsets, [lead, offsets.shape[-1]]), i64)
    ends, begins = (_columns(c, offsets, *bounds) for bounds in ((1, 2**62), (0, -1)))
    return ends, c.add("sub", ends, begins), _columns(c, offsets, 0, 1)


def _columns(c: Call, x: Operand, start: int, end: int) -> Operand:
    return c.add("slice", x, starts=(start,), ends=(end,), axes=(1,), steps=(1,))


def _segment_of_each(c: Call, size: Any, ends: Operand, first: Operand) -> Operand:
    """Returns the segment of each place [lead, size]: as many as end before it; one behind the last where it is in none."""
    lead, count = ends.shape
    at = c.reshape(c.cast(c.add("range", start=0, size=size, step=1), i64), [1, size, 1])
    before = c.cast(c.add("less_equal", c.reshape(ends, [lead, 1, count]), at), i64)
    number = c.add("reduce_sum", before, axes=(2,), keepdims=False)
    outside = c.add("less", c.reshape(at, [1, size]), first)
    return c.add("where", outside, c.cast(c.size(count), i64), number)


def _mean(c: Call, sums: Operand, lengths: Operand, *, is_given: bool) -> Operand:
    """Returns sums divided by lengths; an empty segment is NaN, or its initial value if that *is given*."""
    zero, one = c.scalar(0, sums.dtype), c.scalar(1, sums.dtype)
    empty = c.add("equal", lengths, zero)
    made = c.add("div", sums, c.add("where", empty, one, lengths))
    return made if is_given else c.add("where", empty, c.scalar(math.nan, sums.dtype), made)
