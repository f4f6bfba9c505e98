"""Regions that a detector proposes: anchors at all places of an image, moved and scaled, and chosen by their scores.

See Ren et al., "Faster R-CNN", 2015. Corners are those of pixels: a box from 3 to 5 is 3 wide.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from weft.frontends.mxnet.call import Call
from weft.frontends.mxnet.registry import translates
from weft.graph import Array
from weft.graph.builder import CompileTimeConstant, Operand, static_sizes
from weft.graph.composites.detection.coding import Side, decoded
from weft.graph.composites.detection.suppression import best_boxes
from weft.graph.composites.ordering import top_k
from weft.graph.composites.sequences import element, stack
from weft.support.dtypes import i64


@dataclass(frozen=True)
class _Settings:
    """Sizes [images, anchors, height, width] of the scores, and the distance of the places in pixels."""

    images: int
    anchors: int
    height: int
    width: int
    stride: int


@translates("_contrib_Proposal", "_contrib_MultiProposal")
def proposal(c: Call) -> tuple[Operand, Operand]:
    """The best regions of each image, as rows (image, x0, y0, x1, y1), and their scores; the first ones again behind the last.

    Inputs are scores [N, 2 A, H, W], those of the background first, deltas of A anchors at each place [N, 4 A, H, W],
    and the height, width and scale of each image [N, 3].
    """
    scores, moves = c.input(0, rank=4), c.input(1, rank=4)
    s = _settings(c, scores, moves)
    of_image = [c.reshape(element(c, c.input(2, rank=2), 1, k), [s.images, 1]) for k in range(3)]
    objects = c.add("slice", scores, starts=(s.anchors,), ends=(2 * s.anchors,), axes=(1,), steps=(1,))
    n = s.height * s.width * s.anchors
    flat = c.reshape(c.transpose(objects, [0, 2, 3, 1]), [s.images, n])
    ends = _clipped(c, _moved(c, s, moves), of_image)
    flat, ends = _large_enough(c, _inside(c, s, flat, of_image), ends, of_image[2])
    first = c.integer("rpn_pre_nms_top_n", 6000)
    best, order = top_k(c, flat, min(first, n) if first > 0 else n, 1, largest=True)
    boxes = _rows_at(c, stack(c, [e[k] for k in range(2) for e in ends], 2), order)
    return _chosen(c, s.images, boxes, best)


def _settings(c: Call, scores: Operand, moves: Operand) -> _Settings:
    known, anchors = static_sizes(scores.shape), _anchors(c)
    if (
        known is None
        or known[1] != 2 * len(anchors)
        or static_sizes(moves.shape) != [known[0], 2 * known[1], *known[2:]]
    ):
        c.fail(
            f"its scores {scores!r} and {moves!r} are not those of {len(anchors)} anchors", "give numbers: shapes={...}"
        )
    return _Settings(known[0], len(anchors), known[2], known[3], c.integer("feature_stride", 16))


def _anchors(c: Call) -> Array:
    """Returns the anchors (x0, y0, x1, y1) at the first place: each ratio of height to width in each scale."""
    side = c.integer("feature_stride", 16)
    ratios, scales = c.numbers("ratios", (0.5, 1.0, 2.0)), c.numbers("scales", (4.0, 8.0, 16.0, 32.0))
    if side < 1 or min(*ratios, *scales, 1) <= 0:
        c.fail(f"its anchors of ratios {ratios}, scales {scales}, {side} apart are empty", "save the network again")
    made: list[list[float]] = []
    middle = 0.5 * (side - 1)
    for ratio in ratios:
        width = math.floor(math.sqrt(math.floor(side * side / ratio)) + 0.5)
        height = math.floor(width * ratio + 0.5)
        for scale in scales:
            reach = 0.5 * (width * scale - 1), 0.5 * (height * scale - 1)
            made.append([*[middle - r for r in reach], *[middle + r for r in reach]])
    return np.array(made, np.float32)


def _moved(c: Call, s: _Settings, moves: Operand) -> list[tuple[Operand, Operand]]:
    """Returns where the boxes [N, n] at all places begin and end, along x and along y."""
    n = s.height * s.width * s.anchors
    by_place = c.reshape(
        c.transpose(c.reshape(moves, [s.images, s.anchors, 4, s.height, s.width]), [0, 3, 4, 1, 2]), [s.images, n, 4]
    )
    parts = [element(c, by_place, 2, k) for k in range(4)]
    y, x = (v.reshape(-1, 1) * s.stride for v in np.mgrid[: s.height, : s.width])
    corners = (np.concatenate([x, y, x, y], 1)[:, None] + _anchors(c)).reshape(n, 4).astype(np.float32)
    made: list[tuple[Operand, Operand]] = []
    for d in range(2):
        low, high = (CompileTimeConstant(np.ascontiguousarray(corners[:, k])) for k in (d, d + 2))
        if c.flag("iou_loss"):
            made.append((c.add("add", parts[d], low), c.add("add", parts[d + 2], high)))
            continue
        sizes = high.array - low.array + 1
        by = Side(CompileTimeConstant(low.array + np.float32(0.5) * (sizes - 1)), CompileTimeConstant(sizes))
        found = decoded(c, by, parts[d], parts[d + 2])
        made.append(Side(found.middle, c.add("sub", found.size, c.scalar(1, found.size.dtype))).ends(c))
    return made


def _clipped(c: Call, ends: list[tuple[Operand, Operand]], of_image: list[Operand]) -> list[tuple[Operand, Operand]]:
    """Returns boxes cut off at the borders of their images, of so many rows and columns."""
    made: list[tuple[Operand, Operand]] = []
    for pair, size in zip(ends, (of_image[1], of_image[0]), strict=True):
        last = c.add("sub", size, c.scalar(1, size.dtype))
        low, high = (c.add("maximum", c.add("minimum", e, last), c.scalar(0, e.dtype)) for e in pair)
        made.append((low, high))
    return made


def _inside(c: Call, s: _Settings, scores: Operand, of_image: list[Operand]) -> Operand:
    """Returns scores, -1 at places that are not on the image, which may be smaller than the batch has room for."""
    rows, columns = (v.reshape(-1).repeat(s.anchors) for v in np.mgrid[: s.height, : s.width])
    is_there: Operand | None = None
    for places, size in ((rows, of_image[0]), (columns, of_image[1])):
        count = c.add("floor", c.add("div", size, c.scalar(s.stride, size.dtype)))
        within = c.add("less", CompileTimeConstant(places.astype(np.float32)), count)
        is_there = within if is_there is None else c.add("logical_and", is_there, within)
    return c.add("where", is_there, scores, c.scalar(-1, scores.dtype))


def _large_enough(
    c: Call, scores: Operand, ends: list[tuple[Operand, Operand]], scale: Operand
) -> tuple[Operand, list[tuple[Operand, Operand]]]:
    """Returns scores and boxes; of those that are too small the score is -1, and the box larger by the least size."""
    least = c.add("mul", scale, c.scalar(c.number("rpn_min_size", 16), scale.dtype))
    is_small: Operand | None = None
    for low, high in ends:
        short = c.add("less", c.add("add", c.add("sub", high, low), c.scalar(1, low.dtype)), least)
        is_small = short if is_small is None else c.add("logical_or", is_small, short)
    half = c.add("mul", least, c.scalar(0.5, least.dtype))
    made = [
        (
            c.add("where", is_small, c.add("sub", low, half), low),
            c.add("where", is_small, c.add("add", high, half), high),
        )
        for low, high in ends
    ]
    return c.add("where", is_small, c.scalar(-1, scores.dtype), scores), made


def _chosen(c: Call, images: int, boxes: Operand, scores: Operand) -> tuple[Operand, Operand]:
    """Returns the rows of boxes [N, n, 4] that overlap no better one, and their scores."""
    n = (static_sizes(boxes.shape) or [0, 0])[1]
    wanted = c.integer("rpn_post_nms_top_n", 300)
    if wanted < 1 or n < 1:
        c.fail(f"it chooses {wanted} of {n} boxes", "save the network again")
    most = min(wanted, n)
    one = CompileTimeConstant(np.array([0, 0, 1, 1], np.float32))
    limits = [
        c.scalar(most, i64),
        c.scalar(c.number("threshold", 0.7), boxes.dtype),
        c.scalar(-math.inf, boxes.dtype),
    ]
    spans = c.add("add", boxes, one)
    found = best_boxes(c, spans, c.reshape(scores, [images, 1, n]), limits, most, most)
    at = c.add("floor_mod", c.add("range", start=0, size=wanted), c.reshape(found.count, [images, 1]))
    places = c.add("gather_elements", found.places, at, axis=1)
    number = c.add("expand", c.reshape(c.add("range", start=0, size=images), [images, 1, 1]), shape=(images, wanted, 1))
    rows = c.add("concat", c.cast(number, boxes.dtype), _rows_at(c, boxes, places), axis=2)
    values = c.add("gather_elements", found.scores, at, axis=1)
    return c.reshape(rows, [images * wanted, 5]), c.reshape(values, [images * wanted, 1])


def _rows_at(c: Call, rows: Operand, places: Operand) -> Operand:
    """Returns the rows [N, k, ...] of [N, n, ...] at *places* [N, k]."""
    return c.add("gather_nd", rows, c.reshape(places, [*places.shape, 1]), batch_dims=1)
