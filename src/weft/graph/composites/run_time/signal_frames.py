"""Fourier transforms of the frames of a signal, whose length and distance only a run tells."""

from __future__ import annotations

import math
from typing import TypeAlias

from weft.graph.builder.builder import Builder
from weft.graph.builder.partial_evaluator import Operand
from weft.ir import INDEX, Expr, as_expr
from weft.ops import simplify_size
from weft.support.dtypes import f64, i64

Complex: TypeAlias = tuple[Operand, Operand | None]
"""The real and the imaginary part; None for one that is zero."""


def late_frames(
    b: Builder, signal: Complex, window: Operand | None, n: Expr, distance: Operand, *, onesided: bool
) -> Complex:
    """Returns the transforms [batch, frames, frequencies] of the frames of *n* elements of a signal [batch, time].

    Frames begin *distance*, a number that only a run tells, after one another, and are multiplied with *window*. Of a *onesided*
    transform there are the first n // 2 + 1 frequencies. Tables of cosines are computed when the model runs, and multiplied with.
    """
    size = signal[0].shape[1]
    b.require(n <= size, "its frames of {0} elements do not fit a signal of {1}", n, size)
    step = b.reshape(b.cast(distance, i64), ())
    apart = b.add("maximum", step, b.scalar(1, i64))
    count = b.add("add", b.add("div", b.size(size - n), apart), b.scalar(1, i64))
    frames = as_expr(b.late_number(count, "frames", "the number of frames"), INDEX)
    b.require(
        as_expr(b.late_number(step, "step", "the frames' distance", least=1), INDEX) >= 1, "its frames do not move"
    )
    begins = b.add("mul", b.add("range", start=0, size=frames, step=1), apart)
    places = b.add("add", b.reshape(begins, (frames, 1)), b.add("range", start=0, size=n, step=1))
    cosines, sines = _tables(b, n, simplify_size(n // 2 + 1) if onesided else n, signal[0])

    def framed(x: Operand) -> Operand:
        taken = b.add("gather", x, places, axis=1)
        return taken if window is None else b.add("mul", taken, window)

    real = framed(signal[0])
    by_cosines, by_sines = (b.add("matmul", real, t) for t in (cosines, sines))
    if signal[1] is None:
        return by_cosines, by_sines
    imaginary = framed(signal[1])
    own = [b.add("matmul", imaginary, t) for t in (cosines, sines)]
    return b.add("sub", by_cosines, own[1]), b.add("add", by_sines, own[0])


def _tables(b: Builder, n: Expr, kept: Expr, like: Operand) -> tuple[Operand, Operand]:
    """Returns the cosines and the negative sines of 2 pi j k / n, [n, kept]; j k is reduced first, so that no angle is large."""
    rows = b.reshape(b.add("range", start=0, size=n, step=1), (n, 1))
    turns = b.add("floor_mod", b.add("mul", rows, b.add("range", start=0, size=kept, step=1)), b.size(n))
    share = b.add("div", b.cast(turns, f64), b.cast(b.size(n), f64))
    angles = b.add("mul", share, b.scalar(-2 * math.pi, f64))
    return b.cast(b.add("cos", angles), like.dtype), b.cast(b.add("sin", angles), like.dtype)
