"""The gradient of pools that choose: `select_and_scatter` adds each element of a source where its window's choice lies."""

from __future__ import annotations

import math
from typing import Final

from weft.frontends.jax.call import AGAIN, Call
from weft.frontends.jax.ops.convolution import pairs_of
from weft.frontends.jax.ops.movement import padded
from weft.frontends.jax.ops.pooling import MOST_TAPS, Windows, tap
from weft.frontends.jax.ops.reducers import formulas_of
from weft.frontends.jax.registry import translates
from weft.graph.builder import Operand
from weft.support.dtypes import i32

_SUM: Final = {("argument", 0), ("argument", 1)}


@translates("select_and_scatter")
def select_and_scatter(c: Call) -> Operand:
    """A first value, and where elements are the choice of windows the sum of these windows' elements of a source."""
    x, source, first = (c.operand(k) for k in range(3))
    w = _windows(c, x, source)
    scattered = formulas_of(c.operation.regions[1]) if len(c.operation.regions) == 2 else None
    if scattered is None or len(scattered) != 1 or scattered[0][0] != "add" or set(scattered[0][2:]) != _SUM:
        c.fail("it combines elements by another function than a sum", "differentiate with JAX")
    choice, zero = _choice(c, x, w), c.scalar(0, source.dtype)
    parts = [
        _placed(c, c.add("where", c.add("equal", choice, c.scalar(k, i32)), source, zero), x, w, k)
        for k in range(math.prod(w.sizes))
    ]
    while len(parts) > 1:
        parts = [
            *[c.add("add", *pair) for pair in zip(parts[::2], parts[1::2], strict=False)],
            *parts[len(parts) & ~1 :],
        ]
    return c.add("add", parts[0], first)


def _windows(c: Call, x: Operand, source: Operand) -> Windows:
    ones = [1] * x.rank
    sizes, strides = c.ints("window_dimensions", default=ones), c.ints("window_strides", default=ones)
    if len(sizes) != x.rank or len(strides) != x.rank or min([*sizes, *strides], default=1) < 1:
        c.fail(f"its windows are not those of {x!r}", AGAIN)
    pads = pairs_of(c, c.value("padding"), x.rank)
    if any(p != [0, 0] for p in map(list, pads)):
        c.fail("windows that reach into padding are not supported", "pad the tensor before")
    if math.prod(sizes) > MOST_TAPS:
        c.fail(f"windows of {math.prod(sizes)} elements are not supported; {MOST_TAPS} is the most", AGAIN)
    counts = [(n - k) // s + 1 for n, k, s in zip(c.static(x), sizes, strides, strict=True)]
    if c.static(source) != counts:
        c.fail(f"its source {source!r} has not an element for each window of {x!r}", AGAIN)
    return Windows(sizes, strides, ones, [[0, 0] for _ in ones])


def _choice(c: Call, x: Operand, w: Windows) -> Operand:
    """Returns which element of each window the region chooses: one stays as long as it is selected before the next."""
    best = tap(c, x, w, 0)
    chosen: Operand = c.add("full", shape=best.shape, value=0, dtype=i32)
    for k in range(1, math.prod(w.sizes)):
        other = tap(c, x, w, k)
        (stays,) = c.region(0, [best, other])
        best, chosen = c.add("where", stays, best, other), c.add("where", stays, chosen, c.scalar(k, i32))
    return chosen


def _placed(c: Call, given: Operand, x: Operand, w: Windows, k: int) -> Operand:
    """Returns a tensor like *x* of zeros, but for element *k* of each window, which is *given*."""
    low, high = list[int](), list[int]()
    sizes, counts = c.static(x), c.static(given)
    for d in reversed(range(x.rank)):
        k, at = divmod(k, w.sizes[d])
        low.insert(0, at)
        high.insert(0, sizes[d] - at - (counts[d] - 1) * w.strides[d] - 1)
    return padded(c, given, c.scalar(0, given.dtype), low, high, [s - 1 for s in w.strides])
