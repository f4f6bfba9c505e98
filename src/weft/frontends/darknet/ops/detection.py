"""The last layers of detectors: activations of maps of boxes [N, boxes * (numbers of a box), H, W], which stay in this layout.

The boxes' coordinates are made of them afterwards, as by Darknet's `get_network_boxes`, with the anchors of the .cfg.
"""

from __future__ import annotations

from collections.abc import Sequence

from weft.frontends.darknet.call import Call
from weft.frontends.darknet.registry import layer
from weft.graph.builder import Operand
from weft.graph.composites.sequences import concat


def _pieces(c: Call, boxes: int, sizes: Sequence[int]) -> list[Operand]:
    """Returns the input [N, boxes, sum of sizes, H, W] in pieces of *sizes* along the numbers of a box, empty ones left out."""
    x = c.image()
    channels, numbers = c.static(x)[0], sum(sizes)
    if channels != boxes * numbers:
        c.fail(
            f"{boxes} boxes of {numbers} numbers take {boxes * numbers} channels, not {channels}",
            "mend the filters= of the layer before, or classes=",
        )
    by_box = c.reshape(x, [x.shape[0], boxes, numbers, *x.shape[2:]])
    return list(c.add_many("split", by_box, axis=2, sizes=tuple(s for s in sizes if s)))


@layer("yolo")
def yolo(c: Call) -> Operand:
    """YOLOv3's: logistic of places in a cell, of objectness and of classes; sizes stay logarithms (Redmon and Farhadi, 2018)."""
    c.refuse("counters_per_class_normalized")
    classes = c.integer("classes", 20, 0)
    boxes = len(c.integers("mask")) or c.integer("num", 1, 1)
    places, sizes, rest = _pieces(c, boxes, (2, 2, 1 + classes))
    if not c.flag("new_coords"):  # else the convolution before has done so
        places, rest = c.add("sigmoid", places), c.add("sigmoid", rest)
    scale = c.number("scale_x_y", 1.0)
    if scale != 1.0:
        places = c.add("mul", places, c.scalar(scale, places.dtype))
        places = c.add("sub", places, c.scalar((scale - 1) / 2, places.dtype))
    return c.reshape(concat(c, [places, sizes, rest], 2), c.image().shape)


@layer("region")
def region(c: Call) -> Operand:
    """YOLOv2's: logistic of places and objectness, softmax (or logistic) of classes (Redmon and Farhadi, 2017)."""
    c.refuse("tree", "map")
    classes, boxes, coordinates = c.integer("classes", 20, 0), c.integer("num", 1, 1), c.integer("coords", 4, 2)
    parts = _pieces(c, boxes, (2, coordinates - 2, 1, classes))
    objectness = 2 if coordinates > 2 else 1
    parts[0] = c.add("sigmoid", parts[0])
    if not c.flag("background"):
        parts[objectness] = c.add("sigmoid", parts[objectness])
    if classes:
        parts[-1] = c.add("softmax", parts[-1], axis=2) if c.flag("softmax") else c.add("sigmoid", parts[-1])
    return c.reshape(concat(c, parts, 2), c.image().shape)


@layer("detection")
def detection(c: Call) -> Operand:
    """YOLOv1's: the numbers of the layer before (Redmon et al., 2016)."""
    c.refuse("softmax")
    return c.flat()
