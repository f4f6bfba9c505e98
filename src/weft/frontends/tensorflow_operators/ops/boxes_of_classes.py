"""Boxes chosen for each of several classes, and the best of all of them."""

from __future__ import annotations

from weft.frontends.tensorflow_operators.call import SAVE_AGAIN, Call, Results
from weft.frontends.tensorflow_operators.registry import translates
from weft.graph.builder import Operand, static_sizes
from weft.graph.composites.detection.suppression import best_boxes
from weft.ir import ONE
from weft.support.dtypes import f32, i32, i64


@translates("CombinedNonMaxSuppression", outputs=("nmsed_boxes", "nmsed_scores", "nmsed_classes", "valid_detections"))
def combined_non_max_suppression(c: Call) -> Results:
    """The best boxes of all classes in each image, their scores and classes, filled up with zeros, and how many they are."""
    boxes, scores = c.tensor(0, 4), c.permuted(c.tensor(1, 3), [0, 2, 1])
    images, known = scores.shape[0], static_sizes([ONE, *scores.shape[1:], boxes.shape[2]])
    each, most = (int(c.number_at(i, what)) for i, what in ((2, "the boxes of a class"), (3, "the number of boxes")))
    if known is None or known[3] not in (1, known[1]) or each < 1 or most < 1:
        c.fail(f"its boxes {boxes!r} and scores {scores!r} make {each} of a class, {most} at most", SAVE_AGAIN)
    if c.flag("pad_per_class"):
        most = min(most, each * known[1])
    limits = [c.scalar(each, i64), c.tensor(4), c.tensor(5)]
    by_class = c.permuted(boxes, [0, 2, 1, 3])
    shared = known[3] == 1
    given = c.reshape(by_class, [images, known[2], 4]) if shared else by_class
    found = best_boxes(c, given, scores, limits, each, most)
    places = found.places if shared else _joined(c, found.classes, found.places, known[2])
    rows = c.reshape(by_class, [images, known[3] * known[2], 4])
    corners = c.add("gather_nd", rows, c.reshape(places, [*places.shape, 1]), batch_dims=1)
    if c.flag("clip_boxes", True):
        corners = c.add("clip", corners, c.scalar(0, f32), c.scalar(1, f32))
    is_box = c.add(
        "less",
        c.add("range", start=0, size=places.shape[1], step=1),
        c.reshape(found.count, [*found.count.shape, 1]),
    )
    made = [_filled(c, is_box, v, most) for v in (corners, found.scores, c.cast(found.classes, f32))]
    return *made, c.cast(found.count, i32)


def _joined(c: Call, classes: Operand, places: Operand, n: int) -> Operand:
    """Returns the numbers of boxes where each class has *n* of its own."""
    return c.add("add", c.add("mul", classes, c.scalar(n, i64)), places)


def _filled(c: Call, is_box: Operand, x: Operand, most: int) -> Operand:
    """Returns *most* rows of each image, zeros where there is no box."""
    kept = c.add("where", c.reshape(is_box, [*is_box.shape, *[1] * (x.rank - 2)]), x, c.scalar(0, x.dtype))
    known = static_sizes([x.shape[1]])
    rest = most - known[0] if known else 0
    return c.add("pad", kept, pads=(*[0] * x.rank, 0, rest, *[0] * (x.rank - 2))) if rest else kept
