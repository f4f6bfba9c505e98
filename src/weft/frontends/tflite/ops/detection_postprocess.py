"""The last step of detectors: boxes decoded from deltas of anchors, and chosen by their scores."""

from __future__ import annotations

import math
from typing import Final

import numpy as np

from weft.frontends.tflite.call import LiteCall
from weft.frontends.tflite.registry import translates
from weft.graph.builder import Operand, static_sizes
from weft.graph.composites.detection.coding import Side, boxes_of_sides, decoded
from weft.graph.composites.detection.suppression import best_boxes
from weft.graph.composites.ordering import top_k
from weft.graph.composites.sequences import element
from weft.graph.composites.slicing import slice_axes
from weft.support.dtypes import f32, i64

_MOST: Final = 1 << 20


@translates("CUSTOM TFLite_Detection_PostProcess")
def detection_postprocess(c: LiteCall) -> tuple[Operand, ...]:
    """Boxes (y0, x0, y1, x1), their classes, their scores, and how many there are: without those that overlap a better one.

    Inputs are encoded boxes [1, n, 4], scores [1, n, classes], perhaps with one of the background first, and anchors [n, 4]. The
    regular way chooses for each class; the fast one by the best class of each box. Behind the last box there are zeros.
    """
    encoded, scores, anchors = c.tensor(0, 3), c.tensor(1, 3), c.tensor(2, 2)
    known = static_sizes([*encoded.shape[:2], scores.shape[2]])
    classes = c.integer("num_classes")
    if known is None or known[0] != 1 or not 1 <= classes <= known[2]:
        c.fail(f"its boxes {encoded!r} and scores {scores!r} are not those of one image", "convert it for one image")
    most = c.integer("max_detections")
    asked = c.integer("max_classes_per_detection", 1)
    if not 1 <= asked * most <= _MOST:
        c.fail(f"it makes {asked} classes of {most} boxes", "convert the model again")
    boxes = _decoded(c, encoded, anchors)
    by_class = c.permuted(slice_axes(c, scores, [2], [known[2] - classes], [known[2]], [1]), [0, 2, 1])
    if c.flag("use_regular_nms"):
        return _regular(c, boxes, by_class, most, asked)
    return _fast(c, boxes, by_class, most, asked)


def _decoded(c: LiteCall, encoded: Operand, anchors: Operand) -> Operand:
    """Returns boxes [1, n, 4] by two corners; centers are moved, and sides scaled, by those of the anchors."""
    y, x, h, w = (c.add("mul", element(c, encoded, 2, k), _inverse(c, f"{n}_scale")) for k, n in enumerate("yxhw"))
    ay, ax, ah, aw = (c.reshape(element(c, anchors, 1, k), y.shape) for k in range(4))
    return boxes_of_sides(c, [decoded(c, Side(ay, ah), y, h), decoded(c, Side(ax, aw), x, w)])


def _inverse(c: LiteCall, name: str) -> Operand:
    scale = c.number(name)
    if not scale or not math.isfinite(scale):
        c.fail(f"its setting {name} is {scale}", "convert the model again")
    return c.scalar(1 / scale, f32)


def _limits(c: LiteCall, most: int) -> list[Operand]:
    """Returns the most boxes of a class, the most overlap, and the score above which boxes are chosen."""
    least = np.nextafter(np.float32(c.number("nms_score_threshold")), np.float32(-np.inf))
    return [c.scalar(most, i64), c.scalar(c.number("nms_iou_threshold"), f32), c.scalar(float(least), f32)]


def _regular(c: LiteCall, boxes: Operand, scores: Operand, most: int, asked: int) -> tuple[Operand, ...]:
    """The best boxes of all classes, each of which has a limit of its own."""
    each = c.integer("detections_per_class", 100)
    if not 1 <= each <= _MOST:
        c.fail(f"it makes {each} boxes of a class", "convert the model again")
    found = best_boxes(c, boxes, scores, _limits(c, each), each, most)
    places, classes, values = (element(c, v, 0, 0) for v in (found.places, found.classes, found.scores))
    return _results(c, boxes, places, classes, values, found.count, most * asked)


def _fast(c: LiteCall, boxes: Operand, scores: Operand, most: int, asked: int) -> tuple[Operand, ...]:
    """The boxes of the best classes, each with as many classes as are asked for."""
    best = c.add("reduce_max", scores, axes=(1,), keepdims=True)
    found = best_boxes(c, boxes, best, _limits(c, most), most, most)
    chosen = element(c, found.places, 0, 0)
    of_boxes = c.add("gather", c.permuted(element(c, scores, 0, 0), [1, 0]), chosen, axis=0)
    each = min(asked, c.integer("num_classes"))
    values, which = top_k(c, of_boxes, each, 1, largest=True)
    spread = c.add("repeat", chosen, axis=0, times=asked)
    values, which = (c.reshape(c.add("pad", v, pads=(0, 0, 0, asked - each)), spread.shape) for v in (values, which))
    entries = c.add("mul", found.count, c.scalar(asked, i64))
    made = _results(c, boxes, spread, which, values, entries, most * asked)
    return *made[:3], c.cast(found.count, f32)


def _results(
    c: LiteCall, boxes: Operand, places: Operand, classes: Operand, scores: Operand, count: Operand, most: int
) -> tuple[Operand, ...]:
    """Returns *most* boxes, of which *count* are, with classes and scores; zeros for the others."""
    number = static_sizes(places.shape)
    assert number is not None, "sizes are numbers"
    is_box = c.add("less", c.add("range", start=0, size=number[0], step=1), count)
    corners = c.add("gather", element(c, boxes, 0, 0), places, axis=0)
    rest = most - number[0]
    made = [
        c.add("where", c.reshape(is_box, [*is_box.shape, *[1] * (v.rank - 1)]), v, c.scalar(0, f32))
        for v in (corners, c.cast(classes, f32), scores)
    ]
    filled = [c.add("pad", v, pads=(*[0] * v.rank, rest, *[0] * (v.rank - 1))) if rest else v for v in made]
    return *[c.reshape(v, [1, *v.shape]) for v in filled], c.cast(count, f32)
