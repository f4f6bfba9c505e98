"""Boxes chosen by their scores, without those that overlap a better one (non-maximum suppression)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from weft.graph.builder.builder import Builder
from weft.graph.builder.constants import CompileTimeConstant
from weft.graph.builder.partial_evaluator import Operand
from weft.graph.builder.shape_arithmetic import static_sizes
from weft.graph.composites.ordering import top_k
from weft.graph.composites.selection import late_prefix
from weft.ir import INDEX, Expr, as_expr, maximum, minimum
from weft.ops import simplify_size
from weft.support.dtypes import f32, i64


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
    b: Builder,
    boxes: Operand,
    scores: Operand,
    limits: Sequence[Operand],
    room: int,
    most: int,
    kinds: Operand | None = None,
) -> BestBoxes:
    """Returns the *most* best of the boxes that `nms_selection` chooses for each class by *limits*, *room* of a class at most.

    *boxes*, *scores* and *kinds* are those of `scores_of_chosen`.
    """
    images, classes, n = _sizes(b, scores)
    chosen = scores_of_chosen(b, boxes, scores, limits, room, kinds)
    best, order = top_k(b, b.reshape(chosen, (images, classes * n)), min(most, classes * n), 1, largest=True)
    is_box = b.add("less", b.scalar(-np.inf, best.dtype), best)
    number = b.scalar(n, i64)
    return BestBoxes(
        best,
        b.add("div", order, number),
        b.add("floor_mod", order, number),
        b.add("reduce_sum", b.cast(is_box, i64), axes=(1,), keepdims=False),
    )


def scores_of_chosen(
    b: Builder,
    boxes: Operand,
    scores: Operand,
    limits: Sequence[Operand],
    room: int,
    kinds: Operand | None = None,
) -> Operand:
    """Returns the scores of the boxes that `nms_selection` chooses by *limits*, *room* of a class at most; -inf for the others.

    *boxes* are [images, n, 4], or of each class its own [images, classes, n, 4]; *scores* [images, classes, n], of which
    all sizes but the first are known.
    A box displaces those of its own kind alone where *kinds* [images, n] are given, for boxes that all classes share.
    """
    images, classes, n = _sizes(b, scores)
    groups = (simplify_size(images * classes), 1) if boxes.rank == 4 else (images, classes)
    grouped = [b.reshape(boxes, [groups[0], n, 4]), b.reshape(scores, [*groups, n])]
    given = [*grouped, *[b.reshape(v, (1,)) for v in limits], kinds]
    rows, count = b.add_many("nms_selection", *given, room=min(room, n))
    every = simplify_size(images * classes * n)
    weights = CompileTimeConstant(np.array([groups[1] * n, n, 1], np.int64))
    at = b.add("reduce_sum", b.add("mul", rows, weights), axes=(1,), keepdims=False)
    is_row = b.add("less", b.add("range", start=0, size=rows.shape[0], step=1), count)
    at = b.add("where", is_row, at, b.size(every))
    none = b.add("full", shape=(simplify_size(every + 1),), value=-np.inf, dtype=scores.dtype)
    found = b.add("gather_nd", grouped[1], rows)
    chosen = b.add("scatter_nd", none, b.reshape(at, [*at.shape, 1]), found)
    return b.reshape(b.add("slice", chosen, starts=(0,), ends=(every,), axes=(0,), steps=(1,)), (images, classes, n))


def _sizes(b: Builder, scores: Operand) -> tuple[Expr, int, int]:
    """Returns the numbers of images, which may be symbolic, of classes and of boxes."""
    known = static_sizes(scores.shape[1:])
    if known is None:
        b.fail(f"its scores {scores!r} are of symbolic size", "give it numbers: shapes={...}")
    return scores.shape[0], known[0], known[1]
