"""Pooling: of windows, and into as many windows as are asked for. Images are [N, C, ...], or [C, ...] without a batch."""

from __future__ import annotations

import math

import numpy as np

from weft.frontends.torch.call import Call
from weft.frontends.torch.registry import Translation, translates
from weft.graph.builder import CompileTimeConstant, Operand, Results, static_sizes, total
from weft.graph.composites.pooling import adaptive_pool, adaptive_windows
from weft.graph.composites.windows import Window
from weft.ir import index
from weft.support.dtypes import i64


def with_batch(c: Call, name: str, n: int) -> Operand:
    """Returns an argument of *n* spatial dimensions with a batch: of one where it has none."""
    x = c.tensor(name)
    return c.reshape(x, [1, *x.shape]) if x.rank == n + 1 else c.tensor(name, n + 2)


def as_given(c: Call, made: Operand, name: str, n: int) -> Operand:
    """Returns *made* without the batch that `with_batch` gave the argument *name*."""
    return c.reshape(made, made.shape[1:]) if c.tensor(name).rank == n + 1 else made


def _window(c: Call, n: int) -> Window:
    """Reads the window of a pool, whose strides are by default its kernel's sizes."""
    kernel = c.ints("kernel_size", n)
    strides = c.ints("stride", n) if c.arguments.get("stride") else kernel
    return Window(kernel, strides, c.ints("dilation", n, 1), c.ints("padding", n) * 2)


def _max_pool(n: int) -> Translation:
    """The largest element of each window."""
    return lambda c: _largest(c, n)


def _largest(c: Call, n: int) -> Operand:
    x, ceil_mode = with_batch(c, "self", n), bool(c.value("ceil_mode"))
    return as_given(c, c.add("max_pool2d", x, **_window(c, n).attributes, ceil_mode=ceil_mode), "self", n)


def _max_pool_with_indices(n: int) -> Translation:
    """The largest element of each window, and its place in the image."""

    def translate(c: Call) -> Results:
        x, ceil_mode = with_batch(c, "self", n), bool(c.value("ceil_mode"))
        places = c.add("max_pool2d_indices", x, **_window(c, n).attributes, ceil_mode=ceil_mode)
        image = c.cast(c.size(total(x.shape[2:])), i64)
        return _largest(c, n), as_given(c, c.add("trunc_mod", c.cast(places, i64), image), "self", n)

    return translate


def _avg_pool(n: int) -> Translation:
    """The mean of each window, or its sum divided by a number."""

    def translate(c: Call) -> Results:
        x, ceil_mode, divisor = with_batch(c, "self", n), bool(c.value("ceil_mode")), c.value("divisor_override")
        window = _window(c, n).attributes
        if divisor is not None:
            made = c.add("sum_pool2d", x, **window, ceil_mode=ceil_mode)
            return as_given(c, c.add("div", made, c.scalar(divisor, c.dtype)), "self", n)
        counts = bool(c.value("count_include_pad", True))
        return as_given(c, c.add("avg_pool2d", x, **window, ceil_mode=ceil_mode, count_include_pad=counts), "self", n)

    return translate


def _adaptive(n: int, *, largest: bool) -> Translation:
    """The means, or the largest elements, of as many windows as are asked for along each dimension."""

    def translate(c: Call) -> Results:
        x = with_batch(c, "self", n)
        wanted = _sizes_wanted(c, x, n)
        made = as_given(c, adaptive_pool(c, x, wanted, largest=largest), "self", n)
        return (made, as_given(c, _places(c, x, wanted), "self", n)) if largest else made

    return translate


def _sizes_wanted(c: Call, x: Operand, n: int) -> list[int]:
    given = c.arguments["output_size"]
    wanted = given if isinstance(given, list) else [given]
    wanted = list(wanted) * (n if len(wanted) == 1 else 1)
    found = static_sizes([x.shape[2 + d] if size is None else index(size) for d, size in enumerate(wanted)])
    if found is None:
        c.fail("a size of windows that is symbolic is not supported", "export it with static shapes")
    return found


def _places(c: Call, x: Operand, wanted: list[int]) -> Operand:
    """Returns where in its image the largest element of each window is, the first of equal ones."""
    sizes = static_sizes(x.shape[2:])
    if sizes is None:
        c.fail(f"windows of {x!r}, of symbolic size, are not supported", "give it numbers in `shapes`")
    numbers = CompileTimeConstant(np.arange(math.prod(sizes), dtype=np.int64).reshape(sizes))
    places = c.add("expand", numbers, shape=x.shape)
    for d in reversed(range(len(sizes))):  # rows are in order behind their columns
        taps = CompileTimeConstant(adaptive_windows(sizes[d], wanted[d])[0])
        parts, found = (c.add("gather", v, taps, axis=2 + d) for v in (x, places))
        best = c.add("argmax", parts, axis=3 + d, keepdims=True, last=False)
        x, places = (_dropped(c, c.add("gather_elements", v, best, axis=3 + d), 3 + d) for v in (parts, found))
    return places


def _dropped(c: Call, x: Operand, d: int) -> Operand:
    return c.reshape(x, [*x.shape[:d], *x.shape[d + 1 :]])


for _n in (1, 2, 3):
    translates(f"max_pool{_n}d")(_max_pool(_n))
    translates(f"avg_pool{_n}d")(_avg_pool(_n))
    translates(f"adaptive_avg_pool{_n}d")(_adaptive(_n, largest=False))
    translates(f"adaptive_max_pool{_n}d")(_adaptive(_n, largest=True))
for _n in (2, 3):
    translates(f"max_pool{_n}d_with_indices")(_max_pool_with_indices(_n))
    translates(f"_adaptive_avg_pool{_n}d")(_adaptive(_n, largest=False))
