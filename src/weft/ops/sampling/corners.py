"""Samples of images at places that are data: the elements around each place, and their weights.

They are the same for all channels of an image. So they are tensors of their own, computed once (`corners`), and a sample is a sum
of products (`sampled`), of which each element is gathered by one number, or is zero where that is negative.

Outside of the images there are zeros (`zeros`), or the elements at the border (`border`), or their reflections (`reflection`);
or samples outside are zero, and those inside go on from the border up to it (`inside`).
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence
from functools import reduce
from typing import NamedTuple

from weft.ir import INDEX, ZERO, Expr, all_of, apply, cast, const, maximum, minimum, select
from weft.ops.shapes import flatten_index, show_shape, unflatten_index
from weft.support.errors import TypeMismatch
from weft.te import Tensor, compute

CUBIC = -0.75
"""The parameter of the cubic kernel (Keys, 1981)."""


class Corner(NamedTuple):
    """An operand of samples: its number in an image, or -1 for a zero outside of it, and its weight."""

    at: Tensor
    weight: Tensor


def corners(
    x: Tensor,
    shape: Sequence[Expr],
    places: Callable[[Sequence[Expr]], Sequence[Expr]],
    *,
    mode: str = "linear",
    padding: str = "zeros",
    align_corners: bool = False,
) -> list[Corner]:
    """Returns the corners of samples of *shape*; *places* gives where each lies in the images x [N, C, *S], in elements.

    Raises `TypeMismatch` for images without elements: padding has nothing to go on with.
    """
    sizes = x.shape[2:]
    if ZERO in sizes:
        raise TypeMismatch(f"images of shape {show_shape(x.shape)} have no elements to sample")

    def of(choice: Sequence[int]) -> Corner:
        def taps(i: Sequence[Expr]) -> list[tuple[Expr, Expr]]:
            near = [
                _padded(at, cast(s, x.dtype), padding, align_corners=align_corners)
                for at, s in zip(places(i), sizes, strict=True)
            ]
            return [_taps(at, mode)[k] for at, k in zip(near, choice, strict=True)]

        def number(*i: Expr) -> Expr:
            at = _number([place for place, _ in taps(i)], sizes, padding, align_corners=align_corners)
            return select(_inside(places(i), sizes), at, const(-1, INDEX)) if padding == "inside" else at

        def weight(*i: Expr) -> Expr:
            return reduce(lambda a, b: a * b, [w for _, w in taps(i)])

        return Corner(compute(shape, number, "corner"), compute(shape, weight, "weight", dtype=x.dtype))

    count = {"nearest": 1, "linear": 2, "cubic": 4}[mode]
    return [of(choice) for choice in itertools.product(range(count), repeat=len(sizes))]


def sampled(
    x: Tensor, lead: Sequence[Expr], made_of: Sequence[Corner], i: Sequence[Expr], padding: str = "zeros"
) -> Expr:
    """Returns the sample *i* of the image x[lead]."""

    def term(c: Corner) -> Expr:
        at = c.at[tuple(i)]
        value = x[(*lead, *unflatten_index(maximum(at, ZERO), x.shape[len(lead) :]))]
        kept = select(at >= ZERO, value, const(0, x.dtype)) if padding in ("zeros", "inside") else value
        return kept * c.weight[tuple(i)]

    return reduce(lambda a, b: a + b, map(term, made_of))


def _inside(places: Sequence[Expr], sizes: Sequence[Expr]) -> Expr:
    """Returns the condition that a place is in an image, up to its last element and less than one behind it."""
    return all_of([e for at, s in zip(places, sizes, strict=True) for e in (at >= 0, at < cast(s, at.dtype))])


def _number(places: Sequence[Expr], sizes: Sequence[Expr], padding: str, *, align_corners: bool) -> Expr:
    """Returns the number of the element of an image at *places*, which are whole."""
    inside, where = [], []
    for place, size in zip(places, sizes, strict=True):
        whole = (
            _reflected(place, cast(size, place.dtype), align_corners=align_corners)
            if padding == "reflection"
            else place
        )
        k = cast(whole, INDEX)
        inside += [k >= 0, k < size]
        where.append(minimum(maximum(k, 0), size - 1))
    number = flatten_index(where, sizes)
    return select(all_of(inside), number, const(-1, INDEX)) if padding == "zeros" else number


def _padded(at: Expr, size: Expr, padding: str, *, align_corners: bool) -> Expr:
    """Moves a place outside to the border or to its reflection; zeros leave it near, so that it fits an index."""
    if padding in ("border", "inside"):
        return minimum(maximum(at, 0), size - 1)
    if padding == "reflection":
        return _reflected(at, size, align_corners=align_corners)
    return minimum(maximum(at, -4), size + 4)


def _reflected(at: Expr, size: Expr, *, align_corners: bool) -> Expr:
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
