"""Pooling over windows; the pooled dimensions follow the first two, and dimensions after them are carried along."""

from __future__ import annotations

import math
from collections.abc import Sequence

from weft.ir import ZERO, Expr, all_of, cast, const, maximum, minimum, select
from weft.ops.convolutions.conv import check_count, check_window, pad_spatial
from weft.ops.nan_order import order_key
from weft.ops.registry import operator
from weft.ops.shapes import flatten_index, sized
from weft.support.errors import TypeMismatch
from weft.te import Reducer, Tensor, argmax, compute, compute_many, lowest, max_, reduce_axis, sum_

Ints = Sequence[int]


def pooled_size(
    size: Expr, kernel: int, stride: int, before: int, after: int, dilation: int, *, ceil_mode: bool
) -> Expr:
    """Returns the number of windows along one dimension; a window that would begin in the padding after is left out."""
    room = size + (before + after - dilation * (kernel - 1) - 1)
    count = sized(room // stride + 1)[0]
    if ceil_mode:
        covering = (room + (stride - 1)) // stride + 1
        count = sized(minimum(covering, (size + (before + stride - 1)) // stride))[0]
    check_count(count, sized(size + (before + after))[0])
    return count


def _windows(x: Tensor, kernel: Ints, strides: Ints, pads: Ints, dilations: Ints, *, ceil_mode: bool) -> list[Expr]:
    n = len(kernel)
    if x.rank < 2 + n:
        raise TypeMismatch(f"a pool over {n} dimensions of a tensor of {x.rank}")
    check_window("a pool", n, n, strides, pads, dilations)
    return [
        pooled_size(x.shape[2 + d], kernel[d], strides[d], pads[d], pads[n + d], dilations[d], ceil_mode=ceil_mode)
        for d in range(n)
    ]


def _overhang(x: Tensor, outs: Sequence[Expr], kernel: Ints, strides: Ints, pads: Ints, dilations: Ints) -> list[int]:
    """Returns the pads, those at the end enlarged for the last window, which `ceil_mode` may place past the model's pads."""
    n = len(kernel)
    result = list(pads)
    for d in range(n):
        reach = (outs[d] - 1) * strides[d] + dilations[d] * (kernel[d] - 1) + 1
        missing = sized(reach - x.shape[2 + d] - pads[d])[0]
        value = getattr(missing, "value", None)
        result[n + d] = max(pads[n + d], value) if isinstance(value, int) else pads[n + d] + strides[d]
    return result


def _taps(x: Tensor, kernel: Ints, pads: Ints, dilations: Ints) -> list[int]:
    """Returns how many taps of a window may fall on elements of *x*: a model may have windows that are larger than its images."""
    sizes = [getattr(s, "value", None) for s in x.shape[2 : 2 + len(kernel)]]
    return [
        k if s is None else max(1, min(k, -(-(s + before) // dilation)))
        for k, s, before, dilation in zip(kernel, sizes, pads, dilations, strict=False)
    ]


def _over_windows(
    x: Tensor,
    kernel: Ints,
    strides: Ints,
    pads: Ints,
    dilations: Ints,
    ceil_mode: bool,
    *,
    reduce: Reducer = sum_,
    name: str = "pool_sum",
    padding: float = 0,
) -> tuple[Tensor, list[int]]:
    """Returns each window reduced to one element, and the pads as enlarged for `ceil_mode`; they are filled with *padding*."""
    n = len(kernel)
    outs = _windows(x, kernel, strides, pads, dilations, ceil_mode=ceil_mode)
    full = _overhang(x, outs, kernel, strides, pads, dilations)
    taps = _taps(x, kernel, pads, dilations)
    kept = [*pads[:n], *[p if t == k else 0 for p, t, k in zip(pads[n:], taps, kernel, strict=True)]]
    p = pad_spatial(x, _overhang(x, outs, taps, strides, kept, dilations), value=padding)
    axes = [reduce_axis(k, f"k{d}") for d, k in enumerate(taps)]

    def reduced(*i: Expr) -> object:
        at = [i[2 + d] * strides[d] + axes[d] * dilations[d] for d in range(n)]
        return reduce(p[(i[0], i[1], *at, *i[2 + n :])], axes)

    return compute((*x.shape[:2], *outs, *x.shape[2 + n :]), reduced, name, dtype=x.dtype), full


@operator("max_pool2d", per_channel=True)
def max_pool2d(
    x: Tensor, *, kernel: Ints, strides: Ints, pads: Ints, dilations: Ints = (1, 1), ceil_mode: bool = False
) -> Tensor:
    """The largest element of each window, for any number of pooled dimensions."""
    smallest = getattr(lowest(x.dtype), "value", 0)
    windows = x, kernel, strides, pads, dilations, ceil_mode
    return _over_windows(*windows, reduce=max_, name="max_pool2d", padding=smallest)[0]


@operator("max_pool2d_indices")
def max_pool2d_indices(
    x: Tensor,
    *,
    kernel: Ints,
    strides: Ints,
    pads: Ints,
    dilations: Ints = (1, 1),
    ceil_mode: bool = False,
    column_major: bool = False,
) -> Tensor:
    """The position in the flat tensor of the first largest element of each window; *column_major* swaps the pooled dimensions."""
    n = len(kernel)
    outs = _windows(x, kernel, strides, pads, dilations, ceil_mode=ceil_mode)
    axes = [reduce_axis(k, f"k{d}") for d, k in enumerate(_taps(x, kernel, pads, dilations))]

    def first(*i: Expr) -> object:
        at = [i[2 + d] * strides[d] + axes[d] * dilations[d] - pads[d] for d in range(n)]
        inside = all_of([c for d, v in enumerate(at) for c in (v >= 0, v < x.shape[2 + d])])
        place = flatten_index((i[0], i[1]), x.shape[:2])
        order = slice(None, None, -1 if column_major else 1)
        for v, size in zip(at[order], x.shape[2:][order], strict=True):
            place = place * size + v
        return argmax(
            (select(inside, place, ZERO), order_key(select(inside, x[(i[0], i[1], *at)], lowest(x.dtype)))),
            axes,
            inside,
        )

    return compute_many((*x.shape[:2], *outs), first, "max_pool2d_indices")[0]


@operator("sum_pool2d", per_channel=True)
def sum_pool2d(
    x: Tensor, *, kernel: Ints, strides: Ints, pads: Ints, dilations: Ints = (1, 1), ceil_mode: bool = False
) -> Tensor:
    """The sum of each window, for any number of pooled dimensions."""
    return _over_windows(x, kernel, strides, pads, dilations, ceil_mode)[0]


@operator("avg_pool2d", per_channel=True)
def avg_pool2d(
    x: Tensor,
    *,
    kernel: Ints,
    strides: Ints,
    pads: Ints,
    dilations: Ints = (1, 1),
    ceil_mode: bool = False,
    count_include_pad: bool = False,
) -> Tensor:
    """The mean of each window, over all of it or over the elements that are not padding."""
    n = len(kernel)
    sums, full = _over_windows(x, kernel, strides, pads, dilations, ceil_mode)
    shape = sums.shape
    area = math.prod(kernel)
    if not any(full) or (count_include_pad and list(pads) == full):
        return compute(shape, lambda *i: sums[i] * const(1.0 / area, x.dtype), "avg_pool2d", dtype=x.dtype)
    ends = (
        [pads[d] if count_include_pad else 0 for d in range(n)],
        [pads[n + d] if count_include_pad else 0 for d in range(n)],
    )

    def mean(*i: Expr) -> Expr:
        count: Expr = const(1, i[0].dtype)
        for d in range(n):
            count = count * _covered(
                i[2 + d] * strides[d] - pads[d], kernel[d], dilations[d], x.shape[2 + d], ends[0][d], ends[1][d]
            )
        return sums[i] / cast(count, x.dtype)

    return compute(shape, mean, "avg_pool2d", dtype=x.dtype)


def _covered(start: Expr, kernel: int, dilation: int, size: Expr, before: int, after: int) -> Expr:
    """Returns how many taps of a window that begins at *start* fall on -before .. size + after - 1."""
    first = maximum((-before - start + (dilation - 1)) // dilation, 0)
    last = minimum((size + (after - 1) - start) // dilation, kernel - 1)
    return maximum(last - first + 1, 1)
