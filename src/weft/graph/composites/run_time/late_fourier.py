"""Fourier transforms of lengths that only a run tells, as products with tables of cosines and sines that it computes."""

from __future__ import annotations

import math
from typing import TypeAlias

from weft.graph.builder.builder import Builder
from weft.graph.builder.partial_evaluator import Operand
from weft.ir import Expr
from weft.ops import simplify_size
from weft.support.dtypes import bool_, f64, i64

Complex: TypeAlias = tuple[Operand, Operand | None]
"""The real and the imaginary part; None for one that is zero."""


def late_transform(b: Builder, x: Complex, n: Expr, kept: Expr, *, inverse: bool = False) -> Complex:
    """Returns the first *kept* elements of the transform of *x* [..., n], as `fourier` does for a known length."""
    cosines, sines = _tables(b, n, kept, x[0], inverse=inverse)
    by_cosines, by_sines = (b.add("matmul", x[0], t) for t in (cosines, sines))
    if x[1] is None:
        return by_cosines, by_sines
    own = [b.add("matmul", x[1], t) for t in (cosines, sines)]
    return b.add("sub", by_cosines, own[1]), b.add("add", by_sines, own[0])


def _tables(b: Builder, n: Expr, kept: Expr, like: Operand, *, inverse: bool) -> tuple[Operand, Operand]:
    """Returns the cosines and the negative sines of 2 pi j k / n, [n, kept]; j k is reduced first, so that no angle is large.

    Those of an *inverse* transform are positive sines, and both are divided by *n*.
    """
    rows = b.reshape(b.add("range", start=0, size=n, step=1), (n, 1))
    turns = b.add("floor_mod", b.add("mul", rows, b.add("range", start=0, size=kept, step=1)), b.size(n))
    count = b.cast(b.size(n), f64)
    angles = b.add("mul", b.add("div", b.cast(turns, f64), count), b.scalar((2 if inverse else -2) * math.pi, f64))
    both = b.add("cos", angles), b.add("sin", angles)
    cosines, sines = (b.cast(b.add("div", t, count) if inverse else t, like.dtype) for t in both)
    return cosines, sines


def late_inverse_to_real(b: Builder, x: Complex, n: Expr) -> Operand:
    """Returns the *n* real numbers whose transform begins with *x* [..., n // 2 + 1], as `inverse_to_real` does."""
    k, size, half = b.add("range", start=0, size=n, step=1), b.size(n), b.size(simplify_size(n // 2))
    is_first = b.add("less_equal", k, half)
    at = b.add("where", is_first, k, b.add("sub", size, k))
    real, imaginary = (None if p is None else b.add("gather", p, at, axis=p.rank - 1) for p in x)
    if imaginary is not None:
        twice = b.add("mul", k, b.scalar(2, i64))
        is_real = b.add("logical_or", b.add("equal", k, b.scalar(0, i64)), b.add("equal", twice, size))
        imaginary = b.add("where", is_first, imaginary, b.add("neg", imaginary))
        imaginary = b.add("where", is_real, b.scalar(0, imaginary.dtype), imaginary)
    assert real is not None
    return late_transform(b, (real, imaginary), n, n, inverse=True)[0]


def late_resized(b: Builder, x: Complex, n: Expr) -> Complex:
    """Returns a signal cut or filled with zeros along its last dimension to *n* elements."""
    size = x[0].shape[-1]
    if size is n:
        return x
    at, last = b.add("range", start=0, size=n, step=1), b.size(size - 1)
    inside = b.cast(b.add("less_equal", at, last), bool_)

    def resized(p: Operand) -> Operand:
        taken = b.add("gather", p, b.add("minimum", at, last), axis=p.rank - 1)
        return b.add("where", inside, taken, b.scalar(0, p.dtype))

    return resized(x[0]), None if x[1] is None else resized(x[1])
