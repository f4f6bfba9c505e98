"""Pools over windows, and over all positions."""

from __future__ import annotations

from typing import Final

import numpy as np

from weft.frontends.keras.call import Call
from weft.frontends.keras.ops.convolution import padded
from weft.frontends.keras.registry import Translation, translates
from weft.graph.builder import Operand
from weft.graph.composites.pooling import adaptive_pool, spatial_axes
from weft.graph.composites.run_time.late_windows import same_pool
from weft.graph.composites.windows import Window

LOWEST: Final = float(np.finfo(np.float32).min)


def _pool(n: int, op: str) -> Translation:
    """The largest element, or the mean, of each window; elements of the padding count for neither."""

    def translate(c: Call) -> Operand:
        x = c.first(c.floats(rank=n + 2), last=c.channels_last)
        kernel = c.ints("pool_size", n, 2)
        strides = c.ints("strides", n) if c.has("strides") else kernel
        if c.text("padding", "valid") == "same":
            return c.last(same_pool(c, op, x, kernel, strides, LOWEST), last=c.channels_last)
        made, pads = padded(c, x, kernel, strides, [1] * n)
        return c.last(c.add(op, made, **Window(kernel, strides, [1] * n, pads).attributes), last=c.channels_last)

    return translate


def _global_pool(n: int, op: str) -> Translation:
    """The largest element, or the mean, of each channel; of a sequence with a mask, the mean of the steps that count."""

    def translate(c: Call) -> Operand:
        mask = c.mask() if (n, op) == (1, "reduce_mean") else None
        if mask is not None:
            return _mean_of_steps(c, c.floats(rank=3), mask)
        x = c.first(c.floats(rank=n + 2), last=c.channels_last)
        keeps = c.flag("keepdims")
        y = c.add(op, x, axes=spatial_axes(x), keepdims=keeps)
        return c.last(y, last=c.channels_last) if keeps else y

    return translate


def _mean_of_steps(c: Call, x: Operand, mask: Operand) -> Operand:
    time = 1 if c.channels_last else 2
    batch, steps = mask.shape
    wide = c.reshape(mask, [batch, steps, 1] if c.channels_last else [batch, 1, steps])
    kept = c.add("where", wide, x, c.scalar(0, x.dtype))
    parts = [c.add("reduce_sum", v, axes=(time,), keepdims=c.flag("keepdims")) for v in (kept, c.cast(wide, x.dtype))]
    return c.add("div", *parts)


def _adaptive_pool(n: int, *, largest: bool) -> Translation:
    """The largest elements, or the means, of as many windows as are asked for along each dimension."""

    def translate(c: Call) -> Operand:
        x = c.first(c.floats(rank=n + 2), last=c.channels_last)
        return c.last(adaptive_pool(c, x, c.ints("output_size", n), largest=largest), last=c.channels_last)

    return translate


for _n in (1, 2, 3):
    translates(f"AdaptiveMaxPooling{_n}D")(_adaptive_pool(_n, largest=True))
    translates(f"AdaptiveAveragePooling{_n}D")(_adaptive_pool(_n, largest=False))
    for _name, _op, _reduction in (("Max", "max_pool2d", "reduce_max"), ("Average", "avg_pool2d", "reduce_mean")):
        translates(f"{_name}Pooling{_n}D")(_pool(_n, _op))
        translates(f"Global{_name}Pooling{_n}D")(_global_pool(_n, _reduction))
