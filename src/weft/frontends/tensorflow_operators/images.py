"""Windows over images as TensorFlow describes them: the order of dimensions, strides, dilations and padding."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import product
from math import prod
from typing import Any, Final

import numpy as np

from weft.frontends.tensorflow_operators.call import SAVE_AGAIN, Call
from weft.graph.builder import Operand, static_sizes
from weft.graph.composites.run_time.late_windows import same_padded, same_pool
from weft.graph.composites.windows import Window, halved, same_pads, transposed_pads
from weft.ir import Expr

LOWEST: Final = float(np.finfo(np.float32).min)

MOST_TAPS: Final = 1 << 10
"""Places in a window of which each is a slice."""


def is_channels_last(c: Call) -> bool:
    """Tells where a node's images have their channels."""
    return c.text("data_format", "NHWC").endswith("C")


def spatial(c: Call, name: str, n: int, default: int | None = None) -> list[int]:
    """Returns the *n* numbers of an attribute that are those of spatial dimensions; the others have to be 1."""
    found = c.ints(name, None if default is None else [default] * (n + 2))
    last = is_channels_last(c)
    inner, outer = (found[1:-1], found[:1] + found[-1:]) if last else (found[2:], found[:2])
    if len(found) != n + 2 or set(outer) - {1} or any(v < 1 for v in inner):
        c.fail(f"its attribute {name}={found} is not supported", "use positive numbers, and 1 for batch and channels")
    return inner


def pads_of(
    c: Call, kernel: Sequence[int], strides: Sequence[int], dilations: Sequence[int], sizes: Sequence[Expr]
) -> list[int]:
    """Returns the pads before all spatial dimensions, then behind them, by the attributes `padding` and `explicit_paddings`."""
    padding, n = c.text("padding"), len(kernel)
    if padding == "VALID":
        return [0] * (2 * n)
    if padding == "SAME":
        return same_pads(c, kernel, strides, dilations, sizes, lower=False)
    found = c.ints("explicit_paddings", [])
    if padding != "EXPLICIT" or len(found) != 2 * (n + 2):
        c.fail(f"its padding is {padding!r}, with {found}", SAVE_AGAIN)
    pairs = [(found[2 * d], found[2 * d + 1]) for d in range(n + 2)]
    inner = pairs[1:-1] if is_channels_last(c) else pairs[2:]
    return [before for before, _ in inner] + [behind for _, behind in inner]


def taps(c: Call, x: Operand, kernel: Sequence[int], around: float = 0.0) -> Iterator[tuple[tuple[int, int], Operand]]:
    """Yields each place in a window of two dimensions, and the elements of images [N, C, H, W] there, one for each window.

    The windows are those of the attributes `strides`, `rates` and `padding`, with elements *around* the images. Raises
    `ModelError` for windows that there are not, and for more places than `MOST_TAPS`: each is a slice.
    """
    strides, rates = (c.ints(name)[1:3] for name in ("strides", "rates"))
    if any(len(v) != 2 or min(v) < 1 for v in (kernel, strides, rates)) or prod(kernel) > MOST_TAPS:
        c.fail(f"its windows are of {list(kernel)}, by {strides}", SAVE_AGAIN)
    if c.text("padding") == "SAME":
        pads = same_pads(c, kernel, strides, rates, x.shape[2:], lower=False)
        x = c.add("pad", x, pads=(0, 0, *pads[:2], 0, 0, *pads[2:]), value=around)
    counts = [
        (static_size(c, s, "its image") - r * (k - 1) - 1) // by + 1
        for s, k, by, r in zip(x.shape[2:], kernel, strides, rates, strict=True)
    ]
    if min(counts) < 1:
        c.fail(f"its windows of {list(kernel)} are larger than its image", SAVE_AGAIN)
    for i, j in product(*map(range, kernel)):
        starts = i * rates[0], j * rates[1]
        ends = tuple([b + (n - 1) * by + 1 for b, n, by in zip(starts, counts, strides, strict=True)])
        yield (i, j), c.add("slice", x, starts=starts, ends=ends, axes=(2, 3), steps=tuple(strides))


def kernel_of(c: Call, weight: Operand) -> list[int]:
    """Returns the spatial sizes of a weight [out, in, *sizes]; raises `ModelError` where they are symbolic."""
    found = static_sizes(weight.shape[2:])
    if found is None:
        c.fail(f"its weight is of symbolic size: {weight!r}", "give it numbers")
    return found


def static_size(c: Call, size: Expr, what: str) -> int:
    """Returns a size as a number; raises `ModelError` for a symbolic one."""
    found = static_sizes([size])
    if found is None:
        c.fail(f"{what} is of symbolic size", "give it a number")
    return found[0]


def convolved(c: Call, x: Operand, weight: Operand, bias: Operand | None) -> Operand:
    """Returns the convolution of images with a *weight* [out, in / groups, *sizes], by the node's attributes."""
    n, last = weight.rank - 2, is_channels_last(c)
    if x.rank != n + 2:
        c.fail(f"its input should have {n + 2} dimensions: {x!r}", SAVE_AGAIN)
    first, kernel = c.first(x, last=last), kernel_of(c, weight)
    strides, dilations = spatial(c, "strides", n), spatial(c, "dilations", n, 1)
    channels, each = (static_size(c, s, "the number of channels") for s in (first.shape[1], weight.shape[1]))
    if not each or channels % each:
        c.fail(f"its weight takes {each} channels, and its input has {channels}", SAVE_AGAIN)
    if c.text("padding") == "SAME":
        first, pads = same_padded(c, first, kernel, strides, dilations)
    else:
        pads = pads_of(c, kernel, strides, dilations, first.shape[2:])
    attributes: dict[str, Any] = {
        "strides": strides,
        "pads": pads,
        "dilations": dilations,
        "group": channels // each,
    }
    return c.last(c.add("conv2d", first, weight, bias, **attributes), last=last)


def transposed(c: Call, x: Operand, weight: Operand, bias: Operand | None, wanted: Sequence[int | Expr]) -> Operand:
    """Returns the transposed convolution of images with a *weight* [in, out, *sizes], in the sizes *wanted*."""
    n, last = weight.rank - 2, is_channels_last(c)
    first, kernel = c.first(x, last=last), kernel_of(c, weight)
    strides, dilations = spatial(c, "strides", n), spatial(c, "dilations", n, 1)
    window = Window(kernel, strides, dilations, [0] * (2 * n))
    numbers, own = [s for s in wanted if isinstance(s, int)], static_sizes(first.shape[2:])
    reach = [d * (k - 1) + 1 for k, d in zip(kernel, dilations, strict=True)]
    if c.text("padding") == "EXPLICIT":
        window, extra = _cut(c, window, reach, own, numbers)
    elif len(numbers) == n and own is not None:
        window, extra = transposed_pads(window, own, [0] * n, numbers, lower=False)
    else:
        excess = [r - s if c.text("padding") == "SAME" else min(r - s, 0) for r, s in zip(reach, strides, strict=True)]
        window = Window(kernel, strides, dilations, halved([max(e, 0) for e in excess], lower=False))
        extra = [max(-e, 0) for e in excess]
    attributes: dict[str, Any] = {"strides": strides, "pads": window.pads, "dilations": dilations, "group": 1}
    return c.last(c.add("conv_transpose2d", first, weight, bias, output_padding=extra, **attributes), last=last)


def _cut(
    c: Call, window: Window, reach: Sequence[int], own: Sequence[int] | None, wanted: Sequence[int]
) -> tuple[Window, list[int]]:
    """Returns a transposed convolution's *window* with the node's own pads, and the padding behind them for sizes *wanted*."""
    n = len(reach)
    pads = pads_of(c, window.kernel, window.strides, window.dilations, ())
    if own is None or len(wanted) != n:
        c.fail("the sizes of its result are symbolic, and its padding is explicit", "give its input a shape of numbers")
    whole = [(size - 1) * s + r - p for size, s, r, p in zip(own, window.strides, reach, pads[:n], strict=True)]
    behind = [w - to for w, to in zip(whole, wanted, strict=True)]
    made = Window(window.kernel, window.strides, window.dilations, [*pads[:n], *[max(b, 0) for b in behind]])
    return made, [max(-b, 0) for b in behind]


def pooled(c: Call, op: str, x: Operand, n: int) -> Operand:
    """Returns a pool over windows of images of *n* spatial dimensions; elements of the padding do not count."""
    last = is_channels_last(c)
    first, kernel, strides = c.first(x, last=last), spatial(c, "ksize", n), spatial(c, "strides", n)
    ones = [1] * n
    if c.text("padding") == "SAME":
        return c.last(same_pool(c, op, first, kernel, strides, LOWEST), last=last)
    window = Window(kernel, strides, ones, pads_of(c, kernel, strides, ones, first.shape[2:]))
    return c.last(c.add(op, first, **window.attributes), last=last)
