"""Gathering, scattering and sorting."""

from __future__ import annotations

import numpy as np

from weft.frontends.onnx.call import Call, Results
from weft.frontends.onnx.registry import translates
from weft.graph.builder import CompileTimeConstant
from weft.graph.composites import selection
from weft.graph.composites.detection.suppression import non_max_suppression as boxes_by_scores
from weft.support.dtypes import i64


@translates("Gather")
def gather(c: Call) -> Results:
    """Slices at indices along an axis."""
    x = c.input(0)
    return c.add("gather", x, c.input(1), axis=c.axis(0, x.rank))


@translates("GatherElements")
def gather_elements(c: Call) -> Results:
    """Single elements at indices along an axis."""
    x = c.input(0)
    return c.add("gather_elements", x, c.input(1), axis=c.axis(0, x.rank))


@translates("GatherND")
def gather_nd(c: Call) -> Results:
    """Slices at index tuples."""
    return c.add("gather_nd", c.input(0), c.input(1), batch_dims=c.integer("batch_dims", 0))


@translates("ScatterElements", "Scatter")
def scatter_elements(c: Call) -> Results:
    """The tensor with single elements replaced, or combined with updates."""
    x = c.input(0)
    return c.add(
        "scatter_elements", x, c.input(1), c.input(2), axis=c.axis(0, x.rank), reduction=c.text("reduction", "none")
    )


@translates("ScatterND")
def scatter_nd(c: Call) -> Results:
    """The tensor with slices replaced, or combined with updates."""
    return c.add("scatter_nd", c.input(0), c.input(1), c.input(2), reduction=c.text("reduction", "none"))


@translates("NonZero")
def non_zero(c: Call) -> Results:
    """The indices of the elements that are not zero."""
    if not isinstance(c.input(0), CompileTimeConstant):
        return selection.non_zero(c, c.input(0))
    return CompileTimeConstant(np.array(np.nonzero(c.numbers(0, "its input")), np.int64), c.node.output[0])


@translates("Compress")
def compress(c: Call) -> Results:
    """The slices along an axis at which a condition holds; of the flat tensor without one."""
    x = c.input(0)
    if not isinstance(c.input(1), CompileTimeConstant):
        return selection.compress(c, x, c.input(1), c.axis(0, x.rank) if "axis" in c.attributes else None)
    chosen = CompileTimeConstant(np.flatnonzero(c.numbers(1, "the condition")).astype(np.int64))
    if "axis" not in c.attributes:
        return c.add("gather", c.reshape(x, [_elements(c)]), chosen, axis=0)
    return c.add("gather", x, chosen, axis=c.axis(0, x.rank))


def _elements(c: Call) -> int:
    size = 1
    for s in c.input(0).shape:
        value = getattr(s, "value", None)
        if not isinstance(value, int):
            c.fail("flattening a tensor of symbolic size is not supported here; give an axis")
        size *= value
    return size


@translates("Unique")
def unique(c: Call) -> Results:
    """The distinct elements, or slices along an axis; where they stand, which of them each is, and how often they are there."""
    x = c.input(0)
    axis = c.axis(0, x.rank) if "axis" in c.attributes else None
    found = selection.unique(c, x, axis, in_order=c.flag("sorted", True))
    return found.values, c.cast(found.first, i64), found.which, found.counts


@translates("NonMaxSuppression")
def non_max_suppression(c: Call) -> Results:
    """The boxes of each class that are left when those go that overlap one of a higher score."""
    limits = [c.optional(i) for i in (2, 3, 4)]
    centered = c.flag("center_point_box", False)
    return boxes_by_scores(c, c.input(0), c.input(1), limits, centered=centered)


@translates("ReverseSequence")
def reverse_sequence(c: Call) -> Results:
    """Reverses the first elements of each batch's sequence, as many as its length says."""
    x = c.input(0)
    batch, time = c.axis(1, x.rank, "batch_axis"), c.axis(0, x.rank, "time_axis")
    return c.add("reverse_sequence", x, c.input(1), batch_axis=batch, time_axis=time)


@translates("TensorScatter")
def tensor_scatter(c: Call) -> Results:
    """A cache with new entries written along an axis, from an index for each batch on."""
    x = c.input(0)
    begin = c.input(2) if c.has(2) else c.add("full", shape=(x.shape[0],), value=0, dtype=i64)
    circular = c.text("mode", "linear") == "circular"
    return c.add("write_at", x, c.input(1), begin, axis=c.axis(-2, x.rank), circular=circular)
