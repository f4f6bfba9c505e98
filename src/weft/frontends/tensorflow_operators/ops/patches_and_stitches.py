"""Pieces of images laid side by side, and tensors put together from rows at places."""

from __future__ import annotations

from typing import Final

import numpy as np

from weft.frontends.tensorflow_operators.call import SAVE_AGAIN, Call, Results
from weft.frontends.tensorflow_operators.images import taps
from weft.frontends.tensorflow_operators.registry import translates
from weft.graph.builder import Operand, total
from weft.graph.composites.selection import compress
from weft.graph.composites.sequences import concat
from weft.support.dtypes import i64

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
    """Rows of several tensors at places, of which later ones win; zeros where there are none."""
    n = c.integer("N", len(c.inputs) // 2)
    if n < 1 or len(c.inputs) != 2 * n:
        c.fail(f"it has {len(c.inputs)} inputs for {n} tensors", SAVE_AGAIN)
    if not all(c.is_known(k) for k in range(n)):
        return _stitched_late(c, n)
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


def _stitched_late(c: Call, n: int) -> Operand:
    """Returns rows of *n* tensors at places that are computed."""
    tail = c.tensor(n).shape[c.tensor(0).rank :]
    flat = [c.cast(c.reshape(c.tensor(k), [total(c.tensor(k).shape)]), i64) for k in range(n)]
    rows = concat(c, [c.reshape(c.tensor(n + k), [flat[k].shape[0], *tail]) for k in range(n)], 0)
    places = concat(c, flat, 0)
    some = c.add("concat", places, c.reshape(c.scalar(-1, i64), [1]), axis=0)
    last = c.add("reduce_max", some, axes=(0,), keepdims=False)
    count = c.late_number(c.add("add", last, c.scalar(1, i64)), "rows", "the number of rows that are stitched")
    zeros = c.add("full", shape=(count, *tail), value=0, dtype=rows.dtype)
    return c.add("scatter_nd", zeros, c.reshape(places, [places.shape[0], 1]), rows, reduction="none")


@translates("DynamicPartition", outputs=("outputs",))
def partition(c: Call) -> Results:
    """The rows of a tensor in several, as numbers say."""
    x, of_row = c.tensor(0), c.tensor(1)
    rows = c.reshape(x, [total(of_row.shape), *x.shape[of_row.rank :]])
    flat = c.reshape(of_row, [total(of_row.shape)])
    chosen = [c.add("equal", flat, c.scalar(k, flat.dtype)) for k in range(c.integer("num_partitions"))]
    return tuple([compress(c, rows, one, 0) for one in chosen])
