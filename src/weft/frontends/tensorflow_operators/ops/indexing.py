"""Gathering, scattering, and operators that depend on the values of elements."""

from __future__ import annotations

from weft.frontends.tensorflow_operators.call import SAVE_AGAIN, Call, Results
from weft.frontends.tensorflow_operators.registry import translates
from weft.graph.builder import Operand
from weft.graph.composites import selection
from weft.graph.composites.detection.suppression import non_max_suppression as boxes_by_scores
from weft.graph.composites.sequences import element
from weft.ir import simplify
from weft.support.dtypes import f32, i32, i64


@translates("Gather", "GatherV2")
def gather(c: Call) -> Operand:
    """Slices at indices along a dimension; with batch dimensions, those of each batch by itself."""
    return _gathered(c, c.tensor(0), c.tensor(1))


@translates("ResourceGather")
def gather_of_variable(c: Call) -> Operand:
    """Slices of a variable at indices."""
    return _gathered(c, c.variable(0), c.tensor(1))


@translates("ResourceGatherNd")
def gather_nd_of_variable(c: Call) -> Operand:
    """Slices of a variable at index tuples."""
    return c.add("gather_nd", c.variable(0), c.tensor(1), batch_dims=0)


def _gathered(c: Call, x: Operand, indices: Operand) -> Operand:
    axis = c.axis_at(2, x.rank) if c.has(2) else c.integer("axis", 0)
    batch = c.integer("batch_dims", 0)
    batch += indices.rank if batch < 0 else 0
    axis = c.axis_of(axis, x.rank)
    if not batch:
        return c.add("gather", x, indices, axis=axis)
    if not 0 <= batch <= min(axis, indices.rank):
        c.fail(f"it has {batch} batch dimensions, and its axis is {axis}", SAVE_AGAIN)
    moved = c.permuted(x, [*range(batch), axis, *range(batch, axis), *range(axis + 1, x.rank)])
    found = c.add("gather_nd", moved, c.reshape(indices, [*indices.shape, 1]), batch_dims=batch)
    places, between = range(batch, indices.rank), range(indices.rank, indices.rank + axis - batch)
    return c.transpose(found, [*range(batch), *between, *places, *range(indices.rank + axis - batch, found.rank)])


@translates("GatherNd")
def gather_nd(c: Call) -> Operand:
    """Slices at index tuples."""
    return c.add("gather_nd", c.tensor(0), c.tensor(1), batch_dims=c.integer("batch_dims", 0))


@translates("ScatterNd")
def scatter_nd(c: Call) -> Operand:
    """Zeros with slices added at index tuples."""
    shape, updates = tuple(c.sizes(2, "the shape of the result")), c.tensor(1)
    zeros = c.add("full", shape=shape, value=0, dtype=updates.dtype)
    return c.add("scatter_nd", zeros, c.tensor(0), updates, reduction="add")


@translates("TensorScatterUpdate", "TensorScatterAdd", "TensorScatterSub", "TensorScatterMax", "TensorScatterMin")
def tensor_scatter(c: Call) -> Operand:
    """A tensor with slices replaced at index tuples, or combined with updates."""
    kind, updates = c.op.removeprefix("TensorScatter"), c.tensor(2)
    if kind == "Sub":
        updates = c.add("neg", updates)
    reduction = {"Update": "none", "Add": "add", "Sub": "add", "Max": "max", "Min": "min"}[kind]
    return c.add("scatter_nd", c.tensor(0), c.tensor(1), updates, reduction=reduction)


@translates("OneHot")
def one_hot(c: Call) -> Operand:
    """A new dimension with one value at the index given, and another elsewhere."""
    indices, on, off = c.tensor(0), c.tensor(2, 0), c.tensor(3, 0)
    depth = c.late_number(c.tensor(1), "depth", "the depth")
    values = c.add("concat", c.reshape(off, [1]), c.reshape(on, [1]), axis=0)
    axis = c.axis_of(c.integer("axis", -1), indices.rank + 1)
    return c.add("one_hot", indices, values, depth=depth, axis=axis)


@translates("Where")
def where(c: Call) -> Operand:
    """The indices of the elements that are not zero: a row for each."""
    return c.transpose(selection.non_zero(c, c.tensor()), [1, 0])


@translates("Unique", "UniqueWithCounts", "UniqueV2", "UniqueWithCountsV2", outputs=("y", "idx", "count"))
def unique(c: Call) -> Results:
    """The distinct elements, or slices along an axis, as they first stand, which of them each is, and how often each is there."""
    x = c.tensor(0)
    axes = c.ints_at(1, "the axis") if c.has(1) else []
    if len(axes) > 1 or (not axes and x.rank != 1):
        c.fail(f"it looks for distinct parts of {x!r} along {axes}", SAVE_AGAIN)
    axis = c.axis_of(axes[0], x.rank) if axes and x.rank > 1 else None
    found = selection.unique(c, x, axis, in_order=False)
    dtype = c.dtype("out_idx", i32)
    return found.values, c.cast(found.which, dtype), c.cast(found.counts, dtype)


@translates("InvertPermutation")
def invert_permutation(c: Call) -> Operand:
    """Where each number stands in a permutation."""
    return c.cast(c.add("argsort", c.tensor(0, 1), axis=0), c.tensor().dtype)


@translates("UnravelIndex")
def unravel_index(c: Call) -> Operand:
    """The indices in a shape of row-major positions: a row for each dimension."""
    x = c.tensor(0)
    shape = c.sizes(1, "the shape")
    flat = c.add("unravel_index", c.cast(c.reshape(x, [x.shape[0] if x.rank else 1]), i64), shape=tuple(shape))
    return c.cast(c.reshape(flat, [len(shape), *x.shape]), x.dtype)


@translates("NonMaxSuppression", "NonMaxSuppressionV2", "NonMaxSuppressionV3")
def non_max_suppression(c: Call) -> Operand:
    """The boxes that are left when those go that overlap one of a higher score, highest first."""
    return _selected(c)


def _selected(c: Call) -> Operand:
    boxes, scores = c.tensor(0, 2), c.tensor(1, 1)
    overlap = c.tensor(3) if c.has(3) else c.scalar(c.number("iou_threshold", 0.5), f32)
    least = c.tensor(4) if c.has(4) else None
    batch = [c.reshape(boxes, [1, *boxes.shape]), c.reshape(scores, [1, 1, *scores.shape])]
    limits = [c.cast(c.reshape(c.tensor(2), [1]), i64), c.reshape(overlap, [1])]
    found = boxes_by_scores(
        c, batch[0], batch[1], [*limits, None if least is None else c.reshape(least, [1])], centered=False
    )
    return c.cast(element(c, found, 1, 2), i32)


@translates("NonMaxSuppressionV4", outputs=("selected_indices", "valid_outputs"))
def non_max_suppression_padded(c: Call) -> Results:
    """The boxes that are left, filled up with zeros to the most that there may be if they are to be, and their number."""
    return _padded(c)


def _padded(c: Call) -> tuple[Operand, Operand]:
    found = _selected(c)
    count = c.cast(c.size(found.shape[0]), i32)
    if not c.flag("pad_to_max_output_size"):
        return found, count
    most = int(c.number_at(2, "the number of boxes"))
    zeros = c.add("full", shape=(simplify(most - found.shape[0]),), value=0, dtype=i32)
    return c.add("concat", found, zeros, axis=0), count


@translates("NonMaxSuppressionV5", outputs=("selected_indices", "selected_scores", "valid_outputs"))
def non_max_suppression_scores(c: Call) -> Results:
    """The boxes that are left, their scores, and their number."""
    if c.has(5) and float(c.number_at(5, "the sigma of soft suppression")) != 0:
        c.fail("boxes whose scores are lowered by those beside them are not supported", "set soft_nms_sigma to 0")
    found, count = _padded(c)
    scores = c.add("gather", c.tensor(1, 1), found, axis=0)
    if c.flag("pad_to_max_output_size"):
        places = c.add("range", start=0, size=found.shape[0], step=1)
        is_box = c.add("less", c.cast(places, i32), count)
        scores = c.add("where", is_box, scores, c.scalar(0, scores.dtype))
    return found, scores, count


@translates("LowerBound", "UpperBound")
def bounds(c: Call) -> Operand:
    """How many elements of each sorted row are less than each value, or (UpperBound) no greater."""
    rows, values = c.tensor(0, 2), c.tensor(1, 2)
    a, b = c.reshape(rows, [rows.shape[0], 1, rows.shape[1]]), c.reshape(values, [*values.shape, 1])
    below = c.add("less_equal" if c.op == "UpperBound" else "less", a, b)
    return c.cast(c.add("reduce_sum", c.cast(below, i32), axes=(2,), keepdims=False), c.dtype("out_type", i32))
