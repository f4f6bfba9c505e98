"""Sampling a tensor at places that are data."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from functools import reduce

from weft.ir.expr import INDEX, Expr, all_of, apply, cast, const, maximum, minimum, select
from weft.ops.registry import operator
from weft.support.errors import TypeMismatch
from weft.te import Tensor, compute

CUBIC = -0.75
"""The parameter of the cubic kernel (Keys, 1981)."""


@operator("grid_sample")
def grid_sample(
    x: Tensor, grid: Tensor, *, mode: str = "linear", padding: str = "zeros", align_corners: bool = False
) -> Tensor:
    """Samples x [N, C, *S] at grid [N, *O, n], coordinates from -1 to 1 in reverse order of S, giving [N, C, *O].

    *mode* is nearest, linear or cubic; what lies outside is zeros, the border, or a reflection.
    """
    n = x.rank - 2
    if mode not in ("nearest", "linear", "cubic") or padding not in ("zeros", "border", "reflection"):
        raise TypeMismatch(f"grid_sample: there is no mode {mode} with padding {padding}")

    def sampled(*i: Expr) -> Expr:
        axes = []
        for d in range(n):
            size = cast(x.shape[2 + d], x.dtype)
            at = _place(cast(grid[(i[0], *i[2:], n - 1 - d)], x.dtype), size, align_corners)
            axes.append(_taps(_padded(at, size, padding, align_corners), mode))
        terms = [_term(x, i, corner, padding, align_corners) for corner in itertools.product(*axes)]
        return reduce(lambda a, b: a + b, terms)

    return compute((*x.shape[:2], *grid.shape[1:-1]), sampled, "grid_sample", dtype=x.dtype)


def _place(g: Expr, size: Expr, align_corners: bool) -> Expr:
    """Returns the place in elements of a coordinate between -1 and 1."""
    return (g + 1) * (size - 1) * 0.5 if align_corners else ((g + 1) * size - 1) * 0.5


def _padded(at: Expr, size: Expr, padding: str, align_corners: bool) -> Expr:
    """Moves a place outside to the border or to its reflection; zeros leave it near, so that it fits an index."""
    if padding == "border":
        return minimum(maximum(at, 0), size - 1)
    if padding == "reflection":
        return _reflected(at, size, align_corners)
    return minimum(maximum(at, -4), size + 4)


def _reflected(at: Expr, size: Expr, align_corners: bool) -> Expr:
    low = const(0 if align_corners else -0.5, at.dtype)
    span = size - 1 if align_corners else size
    away = apply("abs", at - low)
    turns = apply("floor", away / maximum(span, 1))
    rest = away - turns * span
    odd = turns - apply("floor", turns * 0.5) * 2
    return select(odd > 0.5, span - rest, rest) + low


def _taps(at: Expr, mode: str) -> list[tuple[Expr, Expr]]:
    """Returns the elements along one dimension (as floats) that a place is made of, and their weights."""
    one = const(1, at.dtype)
    if mode == "nearest":
        return [(apply("round_even", at), one)]
    base = apply("floor", at)
    t = at - base
    if mode == "linear":
        return [(base, one - t), (base + 1, t)]
    return [(base + (k - 1), _cubic(apply("abs", t - (k - 1)))) for k in range(4)]


def _cubic(d: Expr) -> Expr:
    near = ((d * (CUBIC + 2) - (CUBIC + 3)) * d) * d + 1
    far = ((d * CUBIC - 5 * CUBIC) * d + 8 * CUBIC) * d - 4 * CUBIC
    return select(d <= 1, near, far)


def _term(x: Tensor, i: Sequence[Expr], corner: Sequence[tuple[Expr, Expr]], padding: str, align_corners: bool) -> Expr:
    """Returns one element that a sample is made of, weighted."""
    inside, where, weight = [], [], const(1, x.dtype)
    for d, (place, w) in enumerate(corner):
        size = x.shape[2 + d]
        if padding == "reflection":
            place = _reflected(place, cast(size, x.dtype), align_corners)
        k = cast(place, INDEX)
        inside += [k >= 0, k < size] if padding == "zeros" else []
        where.append(minimum(maximum(k, 0), size - 1))
        weight = weight * w
    return select(all_of(inside), x[(*i[:2], *where)], const(0, x.dtype)) * weight
