"""Frames of a signal along its last dimension, their Fourier transforms, and the signal that frames add up to."""

from __future__ import annotations

import numpy as np

from weft.graph.builder.builder import Builder
from weft.graph.builder.constants import CompileTimeConstant
from weft.graph.builder.partial_evaluator import Operand
from weft.graph.composites.numerics.fourier import Complex, fourier, inverse_to_real
from weft.graph.core.graph_values import Array
from weft.ir import as_expr
from weft.ops import simplify_size


def framed(b: Builder, x: Operand, n: int, step: int) -> Operand:
    """Returns the frames [..., frames, n] of *n* elements, *step* apart, of a signal [..., time]."""
    size = x.shape[-1]
    b.require(as_expr(n) <= size, "its frames of {0} elements do not fit a signal of {1}", as_expr(n), size)
    count = simplify_size((size - n) // step + 1)
    begins = b.reshape(b.add("range", start=0, size=count, step=step), (count, 1))
    places = b.add("add", begins, b.add("range", start=0, size=n, step=1))
    return b.add("gather", x, places, axis=x.rank - 1)


def short_time_fourier(b: Builder, x: Operand, window: Array, step: int) -> Complex:
    """Returns the transforms [..., frames, n // 2 + 1] of the frames of a signal, times a *window* of n elements."""
    n = len(window)
    frames = b.add("mul", framed(b, x, n, step), CompileTimeConstant(window.astype(x.dtype.numpy)))
    return fourier(b, (frames, None), n, kept=n // 2 + 1)


def inverse_short_time_fourier(b: Builder, x: Complex, window: Array, step: int) -> Operand:
    """Returns the signal [..., time] whose frames have the transforms *x* [..., frames, n // 2 + 1].

    Frames are multiplied with the *window* over the sum of its squares in the frames that overlap.
    """
    n = len(window)
    whole = -(-n // step) * step
    squares = np.pad(window.astype(np.float64) ** 2, (0, whole - n)).reshape(-1, step).sum(0)
    with np.errstate(all="ignore"):
        factors = window / np.tile(squares, whole // step)[:n]
    frames = b.add("mul", inverse_to_real(b, x, n), CompileTimeConstant(factors.astype(x[0].dtype.numpy)))
    return overlapped(b, frames, step)


def overlapped(b: Builder, x: Operand, step: int) -> Operand:
    """Returns the sum of frames [..., frames, n], each *step* elements behind the one before."""
    *lead, count, size = x.shape
    n = int(getattr(size, "value", 0))
    pieces = -(-n // step)
    rank = len(lead) + 3
    wide = b.add("pad", x, pads=(*[0] * (2 * x.rank - 1), pieces * step - n), value=0)
    cut = b.reshape(wide, [*lead, count, pieces, step])
    total: Operand | None = None
    for k in range(pieces):
        one = b.add("slice", cut, starts=(k,), ends=(k + 1,), axes=(rank - 2,), steps=(1,))
        one = b.reshape(one, [*lead, count, step])
        before, behind = [0] * (rank - 1), [0] * (rank - 1)
        before[-2], behind[-2] = k, pieces - 1 - k
        moved = b.add("pad", one, pads=(*before, *behind), value=0)
        total = moved if total is None else b.add("add", total, moved)
    assert total is not None, "frames have elements"
    flat = b.reshape(total, [*lead, simplify_size((count + pieces - 1) * step)])
    ends = simplify_size((count - 1) * step + n)
    return b.add("slice", flat, starts=(0,), ends=(ends,), axes=(flat.rank - 1,), steps=(1,))
