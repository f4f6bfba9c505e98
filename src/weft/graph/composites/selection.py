"""Selections with a data-dependent number of elements."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import prod

import numpy as np

from weft.graph.builder.builder import Builder
from weft.graph.builder.constants import CompileTimeConstant
from weft.graph.builder.partial_evaluator import Operand
from weft.graph.builder.shape_arithmetic import static_sizes, total
from weft.graph.composites.ordering import top_k
from weft.ir import INDEX, Expr, as_expr, maximum, minimum
from weft.ops import simplify_size
from weft.support.dtypes import f32, i64


def late_prefix(b: Builder, x: Operand, count: Operand, name: str, what: str) -> Operand:
    """Returns the first elements of *x* along axis 0, as many as *count*, a vector of one integer, says when it is computed."""
    size = b.late_number(count, name, what)
    return b.add("slice", x, starts=(0,), ends=(size,), axes=(0,), steps=(1,), inside=True)


def true_positions(b: Builder, x: Operand) -> Operand:
    """Returns the row-major positions of the elements of *x* that are not zero, as a vector of a late size."""
    positions, count = b.add_many("nonzero_positions", x)
    return late_prefix(b, positions, count, "found", "the number of elements that are not zero")


def non_zero(b: Builder, x: Operand) -> Operand:
    """Returns the indices of the elements of *x* that are not zero: a row for each dimension, a column for each element."""
    return b.add("unravel_index", true_positions(b, x), shape=x.shape)


def first_true(b: Builder, flags: Operand) -> Operand:
    """Returns the row-major place of the first of *flags* that holds, counted from 1; 0 where none does."""
    count = total(flags.shape)
    behind = b.add("sub", b.size(count), b.add("range", start=0, size=count))  # how many there are from each on
    found = b.add("where", b.reshape(flags, (count,)), behind, b.scalar(0, i64))
    most = b.add("reduce_max", found, axes=(0,), keepdims=False)
    place = b.add("sub", b.size(count + 1), most)
    return b.add("where", b.add("equal", most, b.scalar(0, i64)), most, place)


def compress(b: Builder, x: Operand, condition: Operand, axis: int | None) -> Operand:
    """Returns the slices of *x* along *axis* at which the vector *condition* holds; elements of the flat tensor for None."""
    chosen = true_positions(b, condition)
    if axis is None:
        return b.add("gather", b.reshape(x, (total(x.shape),)), chosen, axis=0)
    return b.add("gather", x, chosen, axis=axis)


@dataclass(frozen=True)
class Unique:
    """The distinct slices of a tensor, where each stands first, which of them each slice is, and how often each is there."""

    values: Operand
    first: Operand
    which: Operand
    counts: Operand


def unique(b: Builder, x: Operand, axis: int | None, *, in_order: bool) -> Unique:
    """Returns the distinct slices of *x* along *axis*, or its elements for None: *in_order*, or as they stand in *x*."""
    flat = b.reshape(x, (total(x.shape),)) if axis is None else x
    size = flat.shape[axis or 0]
    if axis is None:
        order = b.add("argsort", flat, axis=0)
        ordered = b.add("gather", flat, order, axis=0)
        before = b.add("gather", ordered, _clipped(b, b.add("range", start=-1, size=size, step=1), size), axis=0)
        is_first = b.add("equal", b.add("range", start=0, size=size, step=1), b.scalar(0, i64))
        differs = b.add("logical_or", is_first, b.add("logical_not", b.add("equal", ordered, before)))
    else:
        perm = [axis, *[d for d in range(x.rank) if d != axis]]
        rest = [s for d, s in enumerate(x.shape) if d != axis]
        order, differs = b.add_many("order_rows", b.reshape(b.transpose(x, perm), (size, total(rest))))
    room, count = b.add_many("nonzero_positions", differs)
    begins = late_prefix(b, room, count, "distinct", "the number of distinct elements")
    number = begins.shape[0]
    ranks = b.add("sub", b.add("cumsum", b.cast(differs, i64), axis=0), b.scalar(1, i64))
    which = b.add("gather", ranks, b.add("argsort", order, axis=0), axis=0)
    first = b.add("gather", order, begins, axis=0)
    following = b.add("range", start=1, size=number, step=1)
    ends = b.add("gather", room, _clipped(b, following, size), axis=0)
    is_last = b.add("equal", following, b.size(number))
    counts = b.add("sub", b.add("where", is_last, b.size(size), ends), begins)
    if not in_order:
        stands = b.add("argsort", first, axis=0)
        which = b.add("gather", b.add("argsort", stands, axis=0), which, axis=0)
        first, counts = (b.add("gather", v, stands, axis=0) for v in (first, counts))
    return Unique(b.add("gather", flat, first, axis=axis or 0), first, which, counts)


def _clipped(b: Builder, places: Operand, size: Expr) -> Operand:
    """Returns places moved to the nearest that a dimension of *size* has."""
    last = b.add("sub", b.size(size), b.scalar(1, i64))
    return b.add("minimum", b.add("maximum", places, b.scalar(0, i64)), last)


def non_max_suppression(
    b: Builder, boxes: Operand, scores: Operand, limits: Sequence[Operand | None], *, centered: bool
) -> Operand:
    """Returns the boxes that are selected, rows of (image, class, box); see the operator `nms_selection`.

    *limits* are the most boxes of a class (none if it is absent), the most overlap, and the least score (all if it is absent).
    """
    most, overlap, threshold = limits
    if most is None:
        return CompileTimeConstant(np.zeros((0, 3), np.int64))
    if boxes.rank != 3 or scores.rank != 3:
        b.fail(f"boxes should be [images, boxes, 4], scores [images, classes, boxes]: {boxes!r}, {scores!r}")
    room: Expr = scores.shape[2]
    if isinstance(most, CompileTimeConstant) and not most.symbolic:
        room = simplify_size(
            minimum(room, maximum(as_expr(b.late_number(most, "most", "the number of boxes"), INDEX), 0))
        )
    lowest = b.scalar(-np.inf, f32) if threshold is None else threshold
    given = [b.reshape(v, (1,)) for v in (most, overlap if overlap is not None else b.scalar(0, f32), lowest)]
    rows, count = b.add_many("nms_selection", boxes, scores, *given, room=room, centered=centered)
    return late_prefix(b, rows, count, "selected", "the number of selected boxes")


@dataclass(frozen=True)
class BestBoxes:
    """Boxes of each image by their scores, the greatest first: [images, k] each; behind *count* [images] they mean nothing."""

    scores: Operand
    classes: Operand
    places: Operand
    count: Operand


def best_boxes(
    b: Builder, boxes: Operand, scores: Operand, limits: Sequence[Operand], room: int, most: int
) -> BestBoxes:
    """Returns the *most* best of the boxes that `nms_selection` chooses for each class by *limits*, *room* of a class at most.

    *boxes* are [images, n, 4], or of each class its own [images, classes, n, 4]; *scores* [images, classes, n], of known sizes.
    """
    known = static_sizes(scores.shape)
    if known is None:
        b.fail(f"its scores {scores!r} are of symbolic size", "give it numbers: shapes={...}")
    images, classes, n = known
    groups = (images * classes, 1) if boxes.rank == 4 else (images, classes)
    grouped = [b.reshape(boxes, [groups[0], n, 4]), b.reshape(scores, [*groups, n])]
    rows, count = b.add_many("nms_selection", *grouped, *[b.reshape(v, (1,)) for v in limits], room=min(room, n))
    every = prod(known)
    weights = CompileTimeConstant(np.array([groups[1] * n, n, 1], np.int64))
    at = b.add("reduce_sum", b.add("mul", rows, weights), axes=(1,), keepdims=False)
    is_row = b.add("less", b.add("range", start=0, size=rows.shape[0], step=1), count)
    at = b.add("where", is_row, at, b.scalar(every, i64))
    none = b.add("full", shape=(every + 1,), value=-np.inf, dtype=scores.dtype)
    found = b.add("gather_nd", grouped[1], rows)
    chosen = b.add("scatter_nd", none, b.reshape(at, [*at.shape, 1]), found)
    chosen = b.add("slice", chosen, starts=(0,), ends=(every,), axes=(0,), steps=(1,))
    best, order = top_k(b, b.reshape(chosen, (images, classes * n)), min(most, classes * n), 1, largest=True)
    is_box = b.add("less", b.scalar(-np.inf, best.dtype), best)
    number = b.scalar(n, i64)
    return BestBoxes(
        best,
        b.add("div", order, number),
        b.add("floor_mod", order, number),
        b.add("reduce_sum", b.cast(is_box, i64), axes=(1,), keepdims=False),
    )
