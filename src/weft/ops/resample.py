"""Stretching a tensor along an axis; both sizes may be symbolic."""

from __future__ import annotations

from collections.abc import Sequence

from weft.ir import INDEX, Expr, ExprLike, apply, cast, const, maximum, minimum, select
from weft.ops.registry import operator
from weft.ops.shapes import normalize_axis, sized
from weft.support.dtypes import f32
from weft.te import Tensor, compute

COORDINATES = ("half_pixel", "pytorch_half_pixel", "align_corners", "asymmetric")
"""How `resize` may place the elements of its result, as ONNX calls them."""


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
