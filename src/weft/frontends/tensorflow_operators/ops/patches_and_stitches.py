"""Pieces of images laid side by side, and tensors put together from rows at places."""

from __future__ import annotations

from typing import Final

import numpy as np

from weft.frontends.tensorflow_operators.call import SAVE_AGAIN, Call
from weft.frontends.tensorflow_operators.images import taps
from weft.frontends.tensorflow_operators.registry import translates
from weft.graph.builder import Operand

MOST_GROWTH: Final = 1 << 10
"""The most places for each row that is stitched."""


@translates("ExtractImagePatches")
def image_patches(c: Call) -> Operand:
    """The windows of images [batch, H, W, C], with zeros around them, as channels [batch, rows, columns, h * w * C]."""
    x = c.first(c.tensor(0, 4))
    parts = [part for _, part in taps(c, x, c.ints("ksizes")[1:3])]
    return c.last(parts[0] if len(parts) == 1 else c.add("concat", *parts, axis=1))


@translates("DynamicStitch", "ParallelDynamicStitch")
def stitch(c: Call) -> Operand:
    """Rows of several tensors at places that are known, of which later ones win; zeros where there are none."""
    n = c.integer("N", len(c.inputs) // 2)
    if n < 1 or len(c.inputs) != 2 * n:
        c.fail(f"it has {len(c.inputs)} inputs for {n} tensors", SAVE_AGAIN)
    places = np.concatenate([c.numbers(k, "the places").reshape(-1) for k in range(n)]).astype(np.int64)
    tail = c.tensor(n).shape[c.tensor(0).rank :]
    rows = [c.reshape(c.tensor(n + k), [c.numbers(k, "the places").size, *tail]) for k in range(n)]
    whole = c.add("concat", *rows, axis=0) if n > 1 else rows[0]
    count = int(places.max(initial=-1)) + 1
    if count > len(places) * MOST_GROWTH or places.min(initial=0) < 0:
        c.fail(f"its places go up to {count}, and there are {len(places)} rows", SAVE_AGAIN)
    of_row = np.full(count, len(places), np.int64)
    of_row[places] = np.arange(len(places))
    if (of_row == len(places)).any():
        whole = c.add("concat", whole, c.add("full", shape=(1, *tail), value=0, dtype=whole.dtype), axis=0)
    return c.add("gather", whole, c.constant(of_row), axis=0)
