"""Pools made of several operators, and their inverses; `max_pool2d`, `avg_pool2d` and `sum_pool2d` are operators themselves."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from weft.graph.builder.builder import Builder
from weft.graph.builder.constants import CompileTimeConstant
from weft.graph.builder.partial_evaluator import Operand
from weft.graph.builder.shape_arithmetic import static_sizes, total
from weft.graph.composites.windows import Window
from weft.graph.core.graph_values import Array
from weft.ir import ExprLike


def spatial_axes(x: Operand) -> tuple[int, ...]:
    """Returns the dimensions of images [N, C, ...] after the channels."""
    return tuple(range(2, x.rank))


def lp_pool(b: Builder, x: Operand, p: int, window: Window, *, ceil_mode: bool) -> Operand:
    """The p-norm of each window: the sum of p-th powers, to the power 1/p."""
    powers = b.add("power", b.add("abs", x), b.scalar(p, x.dtype))
    sums = b.add("sum_pool2d", powers, **window.attributes, ceil_mode=ceil_mode)
    return b.add("power", sums, b.scalar(1 / p, x.dtype))


def global_lp_pool(b: Builder, x: Operand, p: int) -> Operand:
    """The p-norm over all spatial positions."""
    powers = b.add("power", b.add("abs", x), b.scalar(p, x.dtype))
    sums = b.add("reduce_sum", powers, axes=spatial_axes(x), keepdims=True)
    return b.add("power", sums, b.scalar(1 / p, x.dtype))


def max_unpool(
    b: Builder, x: Operand, indices: Operand, shape: Sequence[ExprLike], target: Sequence[ExprLike] | None = None
) -> Operand:
    """Scatters the elements of *x* to the row-major positions *indices* of a tensor of zeros of *shape*, or of *target*."""
    made = shape if target is None else target
    empty = b.add("full", shape=(total(made),), value=0, dtype=x.dtype)
    flat = b.reshape(indices, [total(x.shape)])
    if target is not None:
        flat = _positions_in(b, flat, shape, target)
    filled = b.add("scatter_elements", empty, flat, b.reshape(x, [total(x.shape)]), axis=0, reduction="none")
    return b.reshape(filled, made)


def _positions_in(b: Builder, positions: Operand, old: Sequence[ExprLike], new: Sequence[ExprLike]) -> Operand:
    """Returns row-major positions in a tensor of shape *old* as positions in one of shape *new*."""
    moved: Operand = b.scalar(0, positions.dtype)
    stride_old: ExprLike = 1
    stride_new: ExprLike = 1
    for size_old, size_new in zip(reversed(old), reversed(new), strict=True):
        digit = b.add("trunc_mod", b.add("div", positions, b.size(stride_old)), b.size(size_old))
        moved = b.add("add", moved, b.add("mul", digit, b.size(stride_new)))
        stride_old, stride_new = total([stride_old, size_old]), total([stride_new, size_new])
    return moved


def adaptive_pool(b: Builder, x: Operand, wanted: Sequence[int], *, largest: bool) -> Operand:
    """Returns the means, or the largest elements, of as many windows of images [N, C, ...] as are *wanted* along each dimension.

    Raises `ModelError` for images of symbolic size, unless one window is wanted.
    """
    if all(w == 1 for w in wanted):
        return b.add("reduce_max" if largest else "reduce_mean", x, axes=spatial_axes(x), keepdims=True)
    sizes = static_sizes(x.shape[2:])
    if sizes is None:
        b.fail(f"windows of {x!r}, of symbolic size, are not supported", "give it numbers in `shapes`")
    if all(w and s % w == 0 for s, w in zip(sizes, wanted, strict=True)):
        kernel = [s // w for s, w in zip(sizes, wanted, strict=True)]
        window = Window(kernel, kernel, [1] * len(kernel), [0] * (2 * len(kernel)))
        return b.add("max_pool2d" if largest else "avg_pool2d", x, **window.attributes)
    for d, (size, count) in enumerate(zip(sizes, wanted, strict=True)):
        x = _windows_along(b, x, 2 + d, size, count, largest=largest)
    return x


def _windows_along(b: Builder, x: Operand, d: int, size: int, count: int, *, largest: bool) -> Operand:
    """Returns the means, or the largest elements, of *count* windows along dimension *d*, which may differ in size by one."""
    taps, inside = adaptive_windows(size, count)
    if not largest:
        weights = (inside / inside.sum(1, keepdims=True)).astype(x.dtype.numpy)
        return b.add("resample", x, CompileTimeConstant(taps), CompileTimeConstant(weights), axis=d)
    parts = b.add("gather", x, CompileTimeConstant(taps), axis=d)
    return b.add("reduce_max", parts, axes=(d + 1,), keepdims=False)


def adaptive_windows(size: int, count: int) -> tuple[Array, Array]:
    """Returns the elements of each of *count* windows, as many for each, and which of these are no repetition of the last."""
    begin = np.arange(count) * size // max(count, 1)
    end = -(-(np.arange(count) + 1) * size // max(count, 1))
    width = int((end - begin).max(initial=1))
    taps = np.minimum(begin[:, None] + np.arange(width), end[:, None] - 1).astype(np.int64)
    return taps, np.arange(width) < (end - begin)[:, None]
