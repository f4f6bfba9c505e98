"""The last steps of detectors: boxes decoded from anchors, compared, and chosen by their scores."""

from __future__ import annotations

import math
from typing import Final

import numpy as np

from weft.frontends.mxnet.call import Call
from weft.frontends.mxnet.registry import translates
from weft.graph.builder import Operand, static_sizes
from weft.graph.composites.detection.coding import Side, boxes_of_sides, decoded, side_between
from weft.graph.composites.detection.suppression import best_boxes, scores_of_chosen
from weft.graph.composites.ordering import top_k
from weft.graph.composites.sequences import concat, element
from weft.graph.composites.slicing import slice_axes
from weft.support.dtypes import i64

_FORMATS: Final = ("corner", "center")


@translates("_contrib_box_iou")
def box_iou(c: Call) -> Operand:
    """How much of their union each two boxes have in common."""
    centered = _format(c, "format", "corner") == "center"
    left, right = c.input(0), c.input(1)
    common: Operand | None = None
    areas: list[Operand] = []
    for d in range(2):
        ends = [_ends(c, x, d, centered) for x in (left, right)]
        last = len(right.shape) - 1
        a0, a1 = (c.reshape(v, [*v.shape, *[1] * last]) for v in ends[0])
        overlap = c.add("sub", c.add("minimum", a1, ends[1][1]), c.add("maximum", a0, ends[1][0]))
        positive = c.add("relu", overlap)
        common = positive if common is None else c.add("mul", common, positive)
        areas.append(c.add("relu", c.add("sub", a1, a0)))
        areas.append(c.add("relu", c.add("sub", ends[1][1], ends[1][0])))
    assert common is not None, "boxes have two dimensions"
    union = c.add("sub", c.add("add", c.add("mul", areas[0], areas[2]), c.add("mul", areas[1], areas[3])), common)
    zero = c.scalar(0, common.dtype)
    return c.add("where", c.add("less", zero, common), c.add("div", common, union), zero)


@translates("_contrib_box_decode")
def box_decode(c: Call) -> Operand:
    """Boxes by two corners, decoded from deltas of anchors."""
    x, anchors = c.input(0, rank=3), c.input(1, rank=3)
    cornered = _format(c, "format", "center") == "corner"
    most = c.number("clip", -1.0)
    parts = [c.add("mul", element(c, x, 2, k), c.scalar(c.number(f"std{k}", 1.0), x.dtype)) for k in range(4)]
    sides: list[Side] = []
    for d in range(2):
        first, second = element(c, anchors, 2, d), element(c, anchors, 2, d + 2)
        by = side_between(c, first, second) if cornered else Side(first, second)
        scaled = c.add("minimum", parts[d + 2], c.scalar(most, x.dtype)) if most > 0 else parts[d + 2]
        sides.append(decoded(c, by, parts[d], scaled))
    return boxes_of_sides(c, sides)


@translates("_contrib_box_nms", "_contrib_box_non_maximum_suppression")
def box_nms(c: Call) -> Operand:
    """Rows of boxes by their scores, the greatest first, without those that overlap a better one; -1 in the rows behind."""
    known = static_sizes(c.input().shape)
    if known is None or len(known) < 2 or known[-2] < 1:
        c.fail(f"its boxes {c.input()!r} should be of known sizes [..., n, k]", "give numbers: shapes={...}")
    n, width = known[-2:]
    first, at, kind = _columns(c, width)
    most = c.integer("topk", -1)
    if most == 0:
        return c.input()
    rows = c.reshape(c.input(), [math.prod(known[:-2]), n, width])
    scores = _valid_scores(c, rows, at, kind)
    if 0 < most < n:
        scores, which = top_k(c, scores, most, 1, largest=True)
        rows = _rows_at(c, rows, which)
    kinds = element(c, rows, 2, kind) if kind >= 0 and not c.flag("force_suppress") else None
    taken = min(n, most) if most > 0 else n
    limits = [c.scalar(taken, i64), c.scalar(c.number("overlap_thresh", 0.5), rows.dtype), _nothing(c, rows)]
    boxes = _proper(c, slice_axes(c, rows, [2], [first], [first + 4], [1]), _format(c, "in_format", "corner"))
    found = best_boxes(c, boxes, c.reshape(scores, [rows.shape[0], 1, taken]), limits, taken, taken, kinds)
    made = _in_format(c, _rows_at(c, rows, found.places), first)
    return c.reshape(_filled(c, made, found.count, n), known)


def _columns(c: Call, width: int) -> tuple[int, int, int]:
    """Returns which elements of a row are the first of a box, its score, and its class, -1 if none is."""
    first, at, kind = c.integer("coord_start", 2), c.integer("score_index", 1), c.integer("id_index", -1)
    if not 0 <= first <= width - 4 or not 0 <= at < width or not -1 <= kind < width:
        c.fail(
            f"its rows of {width} have a box at {first}, a score at {at}, a class at {kind}", "save the network again"
        )
    return first, at, kind


def _valid_scores(c: Call, rows: Operand, at: int, kind: int) -> Operand:
    """Returns the scores of rows; those of the background, and too small ones, are -inf."""
    scores = element(c, rows, 2, at)
    valid = c.add("less", c.scalar(c.number("valid_thresh", 0.0), rows.dtype), scores)
    background = c.integer("background_id", -1)
    if kind >= 0:
        is_background = c.add("equal", element(c, rows, 2, kind), c.scalar(background, rows.dtype))
        valid = c.add("logical_and", valid, c.add("logical_not", is_background))
    return c.add("where", valid, scores, _nothing(c, rows))


def _proper(c: Call, boxes: Operand, how: str) -> Operand:
    """Returns boxes by two corners, of which the second is not before the first: others overlap nothing."""
    sides = [_ends(c, boxes, d, how == "center") for d in range(2)]
    lows, highs = [s[0] for s in sides], [c.add("maximum", *s) for s in sides]
    return concat(c, [c.reshape(v, [*v.shape, 1]) for v in (*lows, *highs)], 2)


def _ends(c: Call, boxes: Operand, d: int, centered: bool) -> tuple[Operand, Operand]:
    """Returns where boxes [..., 4] begin and end in dimension *d*, x before y."""
    if c.axis_of(-1, boxes.rank) < 1 or static_sizes(boxes.shape[-1:]) != [4]:
        c.fail(f"its boxes {boxes!r} are not of four numbers", "give boxes [..., 4]")
    first, second = (element(c, boxes, boxes.rank - 1, k) for k in (d, d + 2))
    return Side(first, second).ends(c) if centered else (first, second)


def _in_format(c: Call, rows: Operand, first: int) -> Operand:
    """Returns rows with boxes in the format of results; those that begin below zero stay as they are, as in MXNet."""
    given, wanted = _format(c, "in_format", "corner"), _format(c, "out_format", "corner")
    if given == wanted:
        return rows
    parts = [element(c, rows, 2, first + k) for k in range(4)]
    if wanted == "corner":
        ends = [Side(parts[d], parts[d + 2]).ends(c) for d in range(2)]
        made = [e[k] for k in range(2) for e in ends]
    else:
        sides = [side_between(c, parts[d], parts[d + 2]) for d in range(2)]
        made = [*[s.middle for s in sides], *[s.size for s in sides]]
    kept = c.add("less", parts[0], c.scalar(0, rows.dtype))
    boxes = [c.add("where", kept, old, new) for old, new in zip(parts, made, strict=True)]
    known = static_sizes(rows.shape[2:]) or [0]
    before = slice_axes(c, rows, [2], [0], [first], [1])
    behind = slice_axes(c, rows, [2], [first + 4], known, [1])
    pieces = [p for p, size in ((before, first), (behind, known[0] - first - 4)) if size]
    middle = [c.reshape(v, [*v.shape, 1]) for v in boxes]
    return concat(c, [*pieces[: first > 0], *middle, *pieces[first > 0 :]], 2)


@translates("_contrib_MultiBoxDetection")
def multi_box_detection(c: Call) -> Operand:
    """Rows (class, score, x0, y0, x1, y1) of each image: the greatest score first, the class -1 where a better box overlaps.

    Inputs are scores [N, classes, n], the first class being the background, deltas of anchors [N, n * 4], and
    anchors [1, n, 4] by two corners. Behind the boxes that are not of the background, rows are -1. See Liu et al., "SSD", 2016.
    """
    scores = c.input(0, rank=3)
    known = static_sizes(scores.shape)
    if known is None or known[1] < 2 or known[2] < 1:
        c.fail(f"its scores {scores!r} should be [images, classes, boxes]", "give numbers: shapes={...}")
    n = known[2]
    objects = slice_axes(c, scores, [1], [1], [known[1]], [1])
    best = c.add("reduce_max", objects, axes=(1,), keepdims=False)
    kinds = c.cast(c.add("argmax", objects, axis=1, keepdims=False), scores.dtype)
    is_box = c.add("less", c.scalar(-1, best.dtype), best)
    passes = c.add("less_equal", c.scalar(c.number("threshold", 0.01), best.dtype), best)
    is_box = c.add("logical_and", is_box, passes)
    parts = [c.reshape(v, [*v.shape, 1]) for v in (kinds, best)]
    rows = concat(c, [*parts, _detected_boxes(c, [known[0], n, 4])], 2)
    in_order = _rows_at(c, rows, c.add("argsort", c.cast(is_box, i64), axis=1, descending=True))
    overlap = c.number("nms_threshold", 0.5)
    if 0 < overlap <= 1:
        in_order = _marked(c, rows, in_order, c.add("where", is_box, best, _nothing(c, best)), overlap)
    count = c.add("reduce_sum", c.cast(is_box, i64), axes=(1,), keepdims=False)
    return _filled(c, in_order, count, n)


def _detected_boxes(c: Call, shape: list[int]) -> Operand:
    """Returns the boxes [N, n, 4] that the anchors are moved and scaled to."""
    given, anchors = c.reshape(c.input(1), shape), c.input(2, rank=3)
    by = c.numbers("variances", (0.1, 0.1, 0.2, 0.2))
    if len(by) != 4:
        c.wrong("variances", "four numbers")
    moves = [c.add("mul", element(c, given, 2, k), c.scalar(by[k], given.dtype)) for k in range(4)]
    sides: list[Side] = []
    for d in range(2):
        ends = [element(c, anchors, 2, k) for k in (d, d + 2)]
        sides.append(decoded(c, side_between(c, *ends), moves[d], moves[d + 2]))
    boxes = boxes_of_sides(c, sides)
    return c.add("clip", boxes, c.scalar(0, boxes.dtype), c.scalar(1, boxes.dtype)) if c.flag("clip", True) else boxes


def _marked(c: Call, rows: Operand, in_order: Operand, scores: Operand, overlap: float) -> Operand:
    """Returns rows by their scores, the class -1 where a better box overlaps; those behind the best `nms_topk` stay in order."""
    known = static_sizes(scores.shape)
    assert known is not None, "sizes are numbers"
    images, n = known
    most = c.integer("nms_topk", -1)
    taken = most if 0 < most < n else n
    best, order = top_k(c, scores, taken, 1, largest=True)
    rows = _rows_at(c, rows, order)
    kinds = element(c, rows, 2, 0)
    boxes = _proper(c, slice_axes(c, rows, [2], [2], [6], [1]), "corner")
    least = float(np.nextafter(np.float32(overlap), np.float32(-1)))
    limits = [c.scalar(taken, i64), c.scalar(least, rows.dtype), _nothing(c, rows)]
    own = None if c.flag("force_suppress") else kinds
    chosen = scores_of_chosen(c, boxes, c.reshape(best, [images, 1, taken]), limits, taken, own)
    is_chosen = c.add("less", _nothing(c, rows), c.reshape(chosen, [images, taken]))
    none = c.scalar(-1, rows.dtype)
    marked = c.add("where", is_chosen, kinds, none)
    found = [concat(c, [c.reshape(marked, [*marked.shape, 1]), slice_axes(c, rows, [2], [1], [6], [1])], 2)]
    if taken < n:
        rest = slice_axes(c, in_order, [1, 2], [taken, 1], [n, 6], [1, 1])
        gone = c.add("full", shape=(images, n - taken, 1), value=-1, dtype=rows.dtype)
        found.append(concat(c, [gone, rest], 2))
    return concat(c, found, 1)


def _rows_at(c: Call, rows: Operand, places: Operand) -> Operand:
    """Returns the rows [N, k, ...] of [N, n, ...] at *places* [N, k]."""
    return c.add("gather_nd", rows, c.reshape(places, [*places.shape, 1]), batch_dims=1)


def _filled(c: Call, rows: Operand, count: Operand, n: int) -> Operand:
    """Returns *n* rows of each image, -1 behind those that count."""
    known = static_sizes(rows.shape[1:2]) or [n]
    is_row = c.add("less", c.add("range", start=0, size=known[0], step=1), c.reshape(count, [*count.shape, 1]))
    kept = c.add("where", c.reshape(is_row, [*is_row.shape, 1]), rows, c.scalar(-1, rows.dtype))
    return c.add("pad", kept, pads=(0, 0, 0, 0, n - known[0], 0), value=-1) if known[0] < n else kept


def _nothing(c: Call, like: Operand) -> Operand:
    return c.scalar(-math.inf, like.dtype)


def _format(c: Call, name: str, default: str) -> str:
    found = c.text(name, default)
    if found not in _FORMATS:
        c.wrong(name, "corner or center")
    return found
