"""Pooling of windows that begin at random places, a fraction of the window's size apart (Graham, 2014)."""

from __future__ import annotations

import math

import numpy as np

from weft.frontends.torch.call import Call
from weft.frontends.torch.ops.windows.pooling import as_given, with_batch
from weft.frontends.torch.registry import Translation, translates
from weft.graph.builder import CompileTimeConstant, Operand, Results, static_sizes
from weft.support.dtypes import i64


def _fractional(n: int, order: tuple[int, ...]) -> Translation:
    """The largest element of each window and its place; *order* tells which random number is of which dimension."""

    def translate(c: Call) -> Results:
        x, drawn = with_batch(c, "self", n), c.tensor("random_samples")
        sizes = static_sizes(x.shape[2:])
        if sizes is None:
            c.fail(f"windows of {x!r}, of symbolic size, are not supported", "give it numbers in `shapes`")
        kernel, counts = c.ints("kernel_size", n), c.ints("output_size", n)
        numbers = CompileTimeConstant(np.arange(math.prod(sizes), dtype=np.int64).reshape(sizes))
        places = c.add("expand", numbers, shape=x.shape)
        for d, k in enumerate(order):
            begins = _begins(c, drawn, k, sizes[d] - kernel[d], counts[d])
            x, places = (_windows(c, v, 2 + d, begins, kernel[d]) for v in (x, places))
        x, places = (_flat_windows(c, v, kernel, counts) for v in (x, places))
        best = c.add("argmax", x, axis=x.rank - 1, keepdims=True, last=False)
        made = [c.add("gather_elements", v, best, axis=x.rank - 1) for v in (x, places)]
        return tuple([as_given(c, c.reshape(v, v.shape[:-1]), "self", n) for v in made])

    return translate


def _begins(c: Call, drawn: Operand, number: int, last: int, count: int) -> Operand:
    """Returns where windows begin [N, C, count]: *last* is where the last does."""
    end = CompileTimeConstant(np.asarray([last], np.int64))
    u = c.add("slice", drawn, starts=(number,), ends=(number + 1,), axes=(2,), steps=(1,))
    lead = u.shape[:2]
    behind = c.add("expand", end, shape=(*lead, 1))
    if count == 1:
        return behind
    step = c.scalar(float(np.float32(last) / np.float32(count - 1)), u.dtype)
    steps = CompileTimeConstant(np.arange(count - 1).astype(u.dtype.numpy))
    ends, start = (c.cast(c.add("floor", c.add("mul", v, step)), i64) for v in (c.add("add", u, steps), u))
    return c.add("concat", c.add("sub", ends, start), behind, axis=2)


def _windows(c: Call, x: Operand, d: int, begins: Operand, width: int) -> Operand:
    """Returns the elements of all windows along dimension *d*, one window after another."""
    taps = CompileTimeConstant(np.arange(width, dtype=np.int64))
    lead, count = begins.shape[:2], begins.shape[2]
    places = c.add("add", c.reshape(begins, [*lead, count, 1]), taps)
    places = c.reshape(places, [*lead, *[1] * (d - 2), count * width, *[1] * (x.rank - d - 1)])
    shape = (*x.shape[:d], count * width, *x.shape[d + 1 :])
    return c.add("gather_elements", x, c.add("expand", places, shape=shape), axis=d)


def _flat_windows(c: Call, x: Operand, kernel: list[int], counts: list[int]) -> Operand:
    """Returns [N, C, *counts, elements of a window]."""
    n = len(kernel)
    parts = [size for pair in zip(counts, kernel, strict=True) for size in pair]
    apart = c.reshape(x, [*x.shape[:2], *parts])
    order = [0, 1, *range(2, 2 + 2 * n, 2), *range(3, 2 + 2 * n, 2)]
    return c.reshape(c.transpose(apart, order), [*x.shape[:2], *counts, math.prod(kernel)])


translates("fractional_max_pool2d")(_fractional(2, (1, 0)))
translates("fractional_max_pool3d")(_fractional(3, (0, 1, 2)))
