"""Elements chosen by data: the places of those that are not zero, boxes by their scores, classes; and tensors like others."""

from __future__ import annotations

from weft.frontends.coreml.call import AGAIN, Call, Label
from weft.frontends.coreml.registry import translates
from weft.graph.builder import Builder, Operand, static_sizes
from weft.graph.composites.selection import non_zero as places_of
from weft.graph.composites.sequences import reverse as reverse_of
from weft.support.dtypes import f32, i32, i64


@translates("fill_like")
def fill_like(c: Call) -> Operand:
    """One number in a tensor's shape."""
    value = c.optional("value") or c.scalar(0, c.dtype())
    return c.add("expand", c.reshape(value, ()), shape=tuple(c.operand("ref_tensor").shape))


@translates("non_zero")
def non_zero(c: Call) -> Operand:
    """The places of the elements that are not zero, a row for each."""
    return c.cast(c.transpose(places_of(c, c.operand()), [1, 0]), i32)


@translates("reverse_sequence")
def reverse_sequence(c: Call) -> Operand:
    """Sequences backwards, each up to its length."""
    x = c.operand()
    time, batch = c.axis_of(c.integer("seq_axis"), x.rank), c.axis_of(c.integer("batch_axis", 0), x.rank)
    order = [time, batch, *[d for d in range(x.rank) if d not in (time, batch)]]
    turned = reverse_of(c, c.transpose(x, order), c.cast(c.operand("lengths"), i64))
    return c.transpose(turned, [order.index(d) for d in range(x.rank)])


@translates("classify")
def classify(c: Call) -> tuple[Operand | Label, ...]:
    """The probabilities of the classes; the name of the likeliest, a text, is not computed."""
    return Label(), c.operand("probabilities")


@translates("non_maximum_suppression")
def non_maximum_suppression(c: Call) -> tuple[Operand, ...]:
    """Boxes (center x, y, width, height), the likeliest first, without those that overlap a better one; -1 behind the last.

    Since iOS 17 the boxes are along the last dimension, and their number is no result.
    """
    boxes, scores = c.operand("boxes"), c.operand("scores")
    is_last = not c.has("score_threshold")
    if is_last:
        boxes, scores = (c.transpose(x, [0, 2, 1]) for x in (boxes, scores))
    limits = c.integer("max_boxes"), c.number("iou_threshold"), c.number("score_threshold", float("-inf"))
    made, places, count = chosen_boxes(c, boxes, scores, limits, by_class=c.flag("per_class_suppression"))
    if is_last:
        return *[c.transpose(x, [0, 2, 1]) for x in made], places
    return *made, places, c.cast(c.reshape(count, [1]), i32)


def chosen_boxes(
    b: Builder, boxes: Operand, scores: Operand, limits: tuple[int, float, float], *, by_class: bool
) -> tuple[list[Operand], Operand, Operand]:
    """Returns the selected boxes [1, n, 4] and their scores [1, n, classes], zeros behind the last, their places, and how many.

    *limits* are the most boxes, the most overlap, and the least score. Raises `ModelError` for several images.
    """
    (most, overlap, least), found = limits, static_sizes([*boxes.shape[:2], *scores.shape[2:]])
    if found is None or found[0] != 1 or (by_class and found[2] != 1):
        b.fail("boxes of several images, or chosen in each class by itself, are not supported", "call it for one image")
    if not 1 <= most <= 1 << 20:
        b.fail(f"it chooses {most} boxes of {boxes!r}", AGAIN)
    best = b.add("reduce_max", b.cast(scores, f32), axes=(2,), keepdims=False)
    given = b.cast(boxes, f32), b.reshape(best, [1, 1, best.shape[1]])
    bounds = [b.reshape(v, [1]) for v in (b.scalar(most, i64), b.scalar(overlap, f32), b.scalar(least, f32))]
    rows, count = b.add_many("nms_selection", *given, *bounds, room=most, centered=True)
    places = b.reshape(b.add("slice", rows, starts=(2,), ends=(3,), axes=(1,), steps=(1,)), [most])
    kept = b.add("less", b.add("range", start=0, size=most, step=1), b.cast(count, i64))
    mask = b.reshape(kept, [1, most, 1])
    made = [b.add("where", mask, b.add("gather", x, places, axis=1), b.scalar(0, x.dtype)) for x in (boxes, scores)]
    return made, b.reshape(b.add("where", kept, b.cast(places, i32), b.scalar(-1, i32)), [1, most]), count
