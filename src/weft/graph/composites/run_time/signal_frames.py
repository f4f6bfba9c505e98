"""Fourier transforms of the frames of a signal, whose length and distance only a run tells."""

from __future__ import annotations

from weft.graph.builder.builder import Builder
from weft.graph.builder.partial_evaluator import Operand
from weft.graph.composites.run_time.late_fourier import Complex, late_transform
from weft.ir import INDEX, Expr, as_expr
from weft.ops import simplify_size
from weft.support.dtypes import i64


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

    def framed(x: Operand) -> Operand:
        taken = b.add("gather", x, places, axis=1)
        return taken if window is None else b.add("mul", taken, window)

    frames_of = framed(signal[0]), None if signal[1] is None else framed(signal[1])
    return late_transform(b, frames_of, n, simplify_size(n // 2 + 1) if onesided else n)
