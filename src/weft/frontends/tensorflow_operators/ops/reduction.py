"""Reductions over dimensions, running sums, and places of extremes."""

from __future__ import annotations

import numpy as np

from weft.frontends.tensorflow_operators.call import SAVE_AGAIN, Call, Results
from weft.frontends.tensorflow_operators.registry import Translation, translates
from weft.graph.builder import CompileTimeConstant, Operand
from weft.graph.composites import ordering
from weft.graph.composites.run_time import late_axes
from weft.ir import Expr, ExprLike
from weft.support.dtypes import bool_, i32, i64, u8


def reduced(c: Call, op: str, x: Operand, axes: list[int], keeps: bool) -> Operand:
    """Returns a reduction, of an image with its channels first where it is known so."""
    made = c.first(x) if x in c.images else None
    if made is None or (not keeps and x.rank - len(axes) > 2):
        return c.add(op, x, axes=tuple(axes), keepdims=keeps)
    moved = sorted(0 if d == 0 else 1 if d == x.rank - 1 else d + 1 for d in axes)
    y = c.add(op, made, axes=tuple(moved), keepdims=keeps)
    return c.last(y) if keeps else y


def _reduction(op: str) -> Translation:
    def translate(c: Call) -> Operand:
        x, keeps = c.tensor(0), c.flag("keep_dims", c.flag("keepdims"))
        if not c.is_known(1):
            number = c.cast(x, u8) if x.dtype is bool_ else x
            return c.cast(late_axes.reduce_named(c, op, number, c.tensor(1), keepdims=keeps), x.dtype)
        axes = c.axes_at(1, x.rank)
        if not axes:
            return x
        if x.dtype is bool_:
            return c.cast(reduced(c, op, c.cast(x, u8), axes, keeps), bool_)
        return reduced(c, op, x, axes, keeps)

    return translate


for _name, _op in {
    "Sum": "reduce_sum",
    "Mean": "reduce_mean",
    "Max": "reduce_max",
    "Min": "reduce_min",
    "Prod": "reduce_prod",
    "All": "reduce_min",
    "Any": "reduce_max",
    "EuclideanNorm": "reduce_l2",
}.items():
    translates(_name)(_reduction(_op))


@translates("ArgMax", "ArgMin")
def arg_extreme(c: Call) -> Operand:
    """Where the first largest, or smallest, element stands along a dimension."""
    x, dtype = c.tensor(0), c.dtype("output_type", i64)
    axis = c.axis_at(1, x.rank)
    return c.cast(c.add("argmax" if c.op == "ArgMax" else "argmin", x, axis=axis, keepdims=False), dtype)


@translates("Cumsum", "Cumprod")
def running(c: Call) -> Operand:
    """Sums, or products, up to each element."""
    x = c.tensor(0)
    op = "cumsum" if c.op == "Cumsum" else "cumprod"
    how = {"exclusive": c.flag("exclusive"), "reverse": c.flag("reverse")}
    if not c.is_known(1):
        return late_axes.along_named(c, x, c.tensor(1), lambda view: c.add(op, view, axis=1, **how))
    return c.add(op, x, axis=c.axis_at(1, x.rank), **how)


@translates("TopKV2", "TopK", outputs=("values", "indices"))
def top_k(c: Call) -> Results:
    """The largest elements along the last dimension, in order, and where they are."""
    x = c.tensor(0)
    k = c.late_number(c.tensor(1), "k", "k") if c.has(1) else c.integer("k")
    if isinstance(k, Expr):
        c.require(k <= x.shape[-1], "takes {0} elements of the last dimension, which has {1}", k, x.shape[-1])
    values, places = ordering.top_k(c, x, k, x.rank - 1, largest=True)
    return values, c.cast(places, i32)


@translates("InTopK", "InTopKV2")
def in_top_k(c: Call) -> Operand:
    """Tells whether the class of each row is among its k largest: fewer than k are larger."""
    scores, classes = c.tensor(0, 2), c.tensor(1, 1)
    k = c.tensor(2) if c.has(2) else c.scalar(c.integer("k"), i32)
    own = c.add("gather_elements", scores, c.reshape(classes, [*classes.shape, 1]), axis=1)
    larger = c.add("reduce_sum", c.cast(c.add("less", own, scores), i32), axes=(1,), keepdims=False)
    return c.add("less", larger, c.cast(k, i32))


@translates("SegmentSum", "SegmentMean", "SegmentMax", "SegmentMin", "SegmentProd")
def segments_in_order(c: Call) -> Operand:
    """The sums (means, extremes, products) of the rows of each segment; without rows, 0 (1 for products)."""
    if not c.is_known(1):
        return _late_segments(c)
    x, ids = c.tensor(0), c.numbers(1, "the segments").reshape(-1).astype(np.int64)
    count, kind = int(ids.max(initial=-1)) + 1, c.op.removeprefix("Segment")
    if ids.min(initial=0) < 0:
        c.fail(f"it has the segment {ids.min()}", SAVE_AGAIN)
    rows = np.bincount(ids, minlength=count).reshape(-1, *[1] * (x.rank - 1))
    made = _combined(c, x, c.tensor(1, 1), count, {"Mean": "Sum"}.get(kind, kind))
    if kind == "Mean":
        return c.add("div", made, c.constant(np.maximum(rows, 1).astype(x.dtype.numpy)))
    if kind in ("Max", "Min") and not rows.all():
        return c.add("where", c.constant(rows > 0), made, c.scalar(0, x.dtype))
    return made


def segment_count(c: Call, ids: Operand) -> ExprLike:
    """Returns one more than the greatest of the numbers of segments, a vector."""
    some = c.add("concat", c.cast(ids, i64), c.reshape(c.scalar(-1, i64), [1]), axis=0)
    last = c.add("reduce_max", some, axes=(0,), keepdims=False)
    return c.late_number(c.add("add", last, c.scalar(1, i64)), "segments", "the number of segments")


def _late_segments(c: Call) -> Operand:
    """Returns the combined rows of each segment, whose number the last of them tells when the model runs."""
    x, ids, kind = c.tensor(0), c.cast(c.tensor(1, 1), i64), c.op.removeprefix("Segment")
    count = segment_count(c, ids)
    made = _combined(c, x, ids, count, {"Mean": "Sum"}.get(kind, kind))
    if kind not in ("Mean", "Max", "Min"):
        return made
    ones = c.add("full", shape=ids.shape, value=1, dtype=x.dtype)
    rows = c.reshape(_combined(c, ones, ids, count, "Sum"), [count, *[1] * (x.rank - 1)])
    if kind == "Mean":
        return c.add("div", made, c.add("maximum", rows, c.scalar(1, x.dtype)))
    return c.add("where", c.add("equal", rows, c.scalar(0, x.dtype)), c.scalar(0, x.dtype), made)


@translates("UnsortedSegmentSum", "UnsortedSegmentMax", "UnsortedSegmentMin", "UnsortedSegmentProd")
def segments(c: Call) -> Operand:
    """The sums (products, extremes) of the rows of each segment; without rows, 0 (1, the least or the greatest number).

    Rows of negative segments are left out: they go to one more segment, which is cut off.
    """
    x, ids = c.tensor(0), c.tensor(1, 1)
    count = c.late_number(c.cast(c.reshape(c.tensor(2), []), i64), "segments", "the number of segments")
    ids = c.add("where", c.add("less", ids, c.scalar(0, ids.dtype)), c.cast(c.size(count), ids.dtype), ids)
    made = _combined(c, x, ids, count + 1, c.op.removeprefix("UnsortedSegment"))
    return c.add("slice", made, starts=(0,), ends=(count,), axes=(0,), steps=(1,))


def _combined(c: Call, x: Operand, ids: Operand, count: ExprLike, kind: str) -> Operand:
    """Returns the rows of each of *count* segments taken together, which are numbers that change nothing where there are none."""
    reduction = {"Sum": "add", "Max": "max", "Min": "min", "Prod": "mul"}[kind]
    begin = c.add("full", shape=(count, *x.shape[1:]), value=_neutral(x, reduction), dtype=x.dtype)
    return c.add("scatter_nd", begin, c.reshape(ids, [*ids.shape, 1]), x, reduction=reduction)


def _neutral(x: Operand, reduction: str) -> float | int:
    """Returns the result of a segment without rows."""
    if reduction in ("add", "mul"):
        return 0 if reduction == "add" else 1
    if x.dtype.is_float:
        greatest = float(np.finfo(x.dtype.numpy).max)  # type: ignore[type-var]
        return -greatest if reduction == "max" else greatest
    limits = np.iinfo(x.dtype.numpy)  # type: ignore[type-var]
    return int(limits.min if reduction == "max" else limits.max)


@translates("Bincount", "DenseBincount")
def bincount(c: Call) -> Operand:
    """How often each integer is there, or the sum of its weights, or whether it is; of a matrix, in each of its rows."""
    ids, weights = c.tensor(0), c.tensor(2)
    size = c.late_number(c.cast(c.reshape(c.tensor(1), []), i64), "integers", "the number of integers")
    if ids.rank not in (1, 2):
        c.fail(f"its input 0 should have 1 or 2 dimensions: {ids!r}", SAVE_AGAIN)
    one = c.scalar(1, weights.dtype)
    given = c.add("expand", one, shape=ids.shape) if _is_empty(weights) else weights
    above = c.cast(c.add("minimum", c.cast(ids, i64), c.size(size)), i64)  # what is too large is counted apart
    begin = c.add("full", shape=(*ids.shape[:-1], size + 1), value=0, dtype=weights.dtype)
    at = [c.reshape(above, [*ids.shape, 1])]
    if ids.rank == 2:
        rows = c.reshape(c.add("range", start=0, size=ids.shape[0]), [ids.shape[0], 1, 1])
        at = [c.add("expand", rows, shape=(*ids.shape, 1)), *at]
    places = at[0] if len(at) == 1 else c.add("concat", *at, axis=2)
    made = c.add("scatter_nd", begin, places, given, reduction="add")
    y = c.add("slice", made, starts=(0,), ends=(size,), axes=(ids.rank - 1,), steps=(1,))
    return c.add("minimum", y, one) if c.flag("binary_output") else y


def _is_empty(x: Operand) -> bool:
    return isinstance(x, CompileTimeConstant) and x.array.size == 0
