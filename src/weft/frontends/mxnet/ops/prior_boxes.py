"""Boxes of detectors, from which a network starts."""

from __future__ import annotations

from typing import Final

import numpy as np

from weft.frontends.mxnet.call import Call
from weft.frontends.mxnet.registry import translates
from weft.graph.builder import CompileTimeConstant, Operand, static_sizes

_MOST_BOXES: Final = 1 << 22


@translates("_contrib_MultiBoxPrior")
def prior_boxes(c: Call) -> Operand:
    """Boxes of several sizes and ratios around the middle of each pixel, as parts of the image (Liu et al., 2016)."""
    known = static_sizes(c.input(0, rank=4).shape[2:])
    if known is None:
        c.fail("its image is of symbolic size", "give it numbers: shapes={...}")
    height, width = known
    sizes, ratios = c.numbers("sizes", (1.0,)), [r**0.5 for r in c.numbers("ratios", (1.0,))]
    shapes = [(s, ratios[0]) for s in sizes] + [(sizes[0], r) for r in ratios[1:]]
    if height * width * len(shapes) > _MOST_BOXES:
        c.fail(f"it makes more than {_MOST_BOXES} boxes", "give smaller images")
    by_axis = [v if v > 0 else 1 / n for v, n in zip(c.numbers("steps", (-1.0, -1.0)), known, strict=True)]
    offsets = c.numbers("offsets", (0.5, 0.5))
    y, x = ((np.arange(n) + o) * s for n, o, s in zip(known, offsets, by_axis, strict=True))
    half = np.array([(s * height / width * r / 2, s / r / 2) for s, r in shapes])
    middle = np.stack(np.broadcast_arrays(x[None, :], y[:, None]), -1)[:, :, None, :]
    boxes = np.concatenate([middle - half, middle + half], -1).reshape(1, -1, 4)
    kept = boxes.clip(0, 1) if c.flag("clip") else boxes
    return CompileTimeConstant(kept.astype(np.float32), c.node.name)
