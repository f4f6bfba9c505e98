"""Grids for sampling images that an affine map moves (Jaderberg et al., "Spatial Transformer Networks", 2015)."""

from __future__ import annotations

from collections.abc import Sequence

from weft.graph.builder.builder import Builder
from weft.graph.builder.partial_evaluator import Operand
from weft.graph.composites.sequences import element
from weft.ir import ExprLike
from weft.support.dtypes import i64


def affine_grid(b: Builder, theta: Operand, sizes: Sequence[ExprLike], *, align_corners: bool) -> Operand:
    """Returns the places [N, *sizes, n] to which maps *theta* [N, n, n + 1] take the elements of images of *sizes*, n of them.

    Coordinates go from -1 to 1, the last dimension's first. With *align_corners* these are the centres of the outermost elements,
    else their edges.
    """
    n, batch = len(sizes), theta.shape[0]
    grid = b.reshape(element(b, theta, 2, n), (batch, *[1] * n, n))
    for k, size in enumerate(reversed(sizes)):
        places = _centres(b, size, theta, align_corners=align_corners)
        along = b.reshape(places, [size if d == n - 1 - k else 1 for d in range(n)] + [1])
        factor = b.reshape(element(b, theta, 2, k), (batch, *[1] * n, n))
        grid = b.add("add", grid, b.add("mul", factor, along))
    return grid


def _centres(b: Builder, size: ExprLike, like: Operand, *, align_corners: bool) -> Operand:
    """Returns the coordinates of the elements along a dimension, -1 for one that is alone and is aligned with the corners."""
    one, two = b.scalar(1, like.dtype), b.scalar(2, like.dtype)
    at = b.cast(b.add("range", start=0, size=size, step=1), like.dtype)
    if align_corners:
        steps = b.cast(b.add("maximum", b.add("sub", b.size(size), b.scalar(1, i64)), b.scalar(1, i64)), like.dtype)
        return b.add("sub", b.add("div", b.add("mul", at, two), steps), one)
    doubled = b.add("add", b.add("mul", at, two), one)
    return b.add("sub", b.add("div", doubled, b.cast(b.size(size), like.dtype)), one)
