"""Sampling a tensor at places that are data, or that depend on symbolic sizes."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from functools import reduce

from weft.ir import INDEX, Expr, ExprLike, all_of, apply, cast, const, maximum, minimum, select
from weft.ops.registry import operator
from weft.ops.shapes import check_shape, normalize_axis, sized
from weft.support.dtypes import f32
from weft.support.errors import TypeMismatch
from weft.te import Tensor, compute

COORDINATES = ("half_pixel", "pytorch_half_pixel", "align_corners", "asymmetric")
"""How `resize` may place the elements of its result, as ONNX calls them."""

CUBIC = -0.75
"""The parameter of the cubic kernel (Keys, 1981)."""


@operator("grid_sample")
def grid_sample(
    x: Tensor, grid: Tensor, *, mode: str = "linear", padding: str = "zeros", align_corners: bool = False
) -> Tensor:
    """Samples x [N, C, *S] at grid [N, *O, n], coordinates from -1 to 1 in reverse order of S, giving [N, C, *O].

    *mode* is nearest, linear or cubic; elements outside are zeros, the border's, or those of a reflection, by *padding*.
    """
    n = x.rank - 2
    check_shape("grid_sample: the grid's batch and depth", (grid.shape[0], grid.shape[-1]), (x.shape[0], n))
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


def interpolated(x: Tensor, lead: Sequence[Expr], places: Sequence[Expr]) -> Expr:
    """Returns x[lead] between its elements at *places*, one of each of the last dimensions, linearly; outside are zeros."""
    sizes = x.shape[len(lead) :]
    near = [_padded(p, cast(s, x.dtype), "zeros", False) for p, s in zip(places, sizes, strict=True)]
    corners = itertools.product(*[_taps(p, "linear") for p in near])
    return reduce(lambda a, b: a + b, [_term(x, lead, corner, "zeros", False) for corner in corners])


@operator("resize")
def resize(
    x: Tensor,
    *,
    axis: int,
    size: ExprLike,
    mode: str = "nearest",
    coordinates: str = "half_pixel",
    nearest: str = "round_prefer_floor",
) -> Tensor:
    """Stretches or shrinks *axis* to *size* by nearest or linear interpolation; either size may be symbolic."""
    d = normalize_axis(axis, x.rank)
    old, new = x.shape[d], sized(size)[0]

    def read(i: Sequence[Expr], at: Expr) -> Expr:
        return x[(*i[:d], minimum(maximum(at, 0), old - 1), *i[d + 1 :])]

    def resized(*i: Expr) -> Expr:
        if mode == "nearest" and coordinates == "asymmetric" and nearest == "floor":
            return read(i, i[d] * old // new)
        at = _origin(i[d], old, new, coordinates)
        if mode == "nearest":
            return read(i, cast(_rounded(at, nearest), INDEX))
        base = apply("floor", at)
        k, t = cast(base, INDEX), cast(at - base, x.dtype)
        return read(i, k) * (1 - t) + read(i, k + 1) * t

    return compute((*x.shape[:d], new, *x.shape[d + 1 :]), resized, "resize", dtype=x.dtype)


def _origin(i: Expr, old: Expr, new: Expr, coordinates: str) -> Expr:
    """Returns where element *i* of the result lies in the input."""
    f, ratio = cast(i, f32), cast(old, f32) / cast(new, f32)
    if coordinates == "asymmetric":
        return f * ratio
    if coordinates == "align_corners":
        return f * (cast(old - 1, f32) / cast(maximum(new - 1, 1), f32))
    half = (f + 0.5) * ratio - 0.5
    return half if coordinates == "half_pixel" else select(new > 1, half, const(0, f32))


def _rounded(at: Expr, nearest: str) -> Expr:
    if nearest in ("floor", "ceil"):
        return apply(nearest, at)
    return apply("ceil", at - 0.5) if nearest == "round_prefer_floor" else apply("floor", at + 0.5)
