"""Discrete Fourier transforms."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

from weft.frontends.torch.call import Call
from weft.frontends.torch.complex_numbers import Complex, parts, translates_complex
from weft.graph.builder import Operand
from weft.graph.composites.numerics import fourier
from weft.ir import Const


@translates_complex("_fft_r2c")
def of_real(c: Call) -> Any:
    """The transform of real numbers; of the last dimension only the first half and one, if asked for."""
    x = c.tensor()
    dims = [c.axis_of(d, x.rank) for d in c.arguments["dim"]]
    n = _length(c, x, dims[-1])
    kept = n // 2 + 1 if c.value("onesided") else n
    made = _along(c, (x, None), dims[-1], lambda y: fourier.unscaled(c, y, n, -1, kept))
    for d in dims[:-1]:
        made = _transformed(c, made, d, -1)
    return _scaled(c, made, math.prod([_length(c, x, d) for d in dims]))


@translates_complex("_fft_c2c")
def of_complex(c: Call) -> Any:
    """The transform of complex numbers, forward or back."""
    x = parts(c, "self")
    dims = [c.axis_of(d, x.rank) for d in c.arguments["dim"]]
    made: fourier.Complex = (x.real, x.imaginary)
    for d in dims:
        made = _transformed(c, made, d, -1 if c.value("forward") else 1)
    return _scaled(c, made, math.prod([_length(c, x.real, d) for d in dims]))


@translates_complex("_fft_c2r")
def to_real(c: Call) -> Any:
    """The real numbers whose transform begins with those given."""
    x = parts(c, "self")
    dims = [c.axis_of(d, x.rank) for d in c.arguments["dim"]]
    n = c.integer("last_dim_size")
    made: fourier.Complex = (x.real, x.imaginary)
    for d in dims[:-1]:
        made = _transformed(c, made, d, 1)
    half = _along(c, made, dims[-1], lambda y: fourier.resized_signal(c, y, n // 2 + 1))
    (real, _) = _along(c, half, dims[-1], lambda y: (fourier.inverse_to_real(c, y, n), None))
    size = n * math.prod([_length(c, x.real, d) for d in dims[:-1]])
    return c.add("mul", real, c.scalar(n * _share(c, size), c.dtype))


def _length(c: Call, x: Operand, d: int) -> int:
    size = x.shape[d]
    if not isinstance(size, Const):
        c.fail(
            f"the transform along dimension {d} of {x!r}, of symbolic size, is not supported",
            "give it a number in `shapes`",
        )
    return int(size.value)


def _share(c: Call, size: int) -> float:
    """Returns the scale of a transform of *size* elements."""
    return (1.0, 1 / math.sqrt(size), 1 / size)[c.integer("normalization")] if size else 1.0


def _scaled(c: Call, x: fourier.Complex, size: int) -> Any:
    factor = c.scalar(_share(c, size), c.dtype)
    real = c.add("mul", x[0], factor)
    return Complex(real, c.add("mul", real, c.scalar(0, c.dtype)) if x[1] is None else c.add("mul", x[1], factor))


def _transformed(c: Call, x: fourier.Complex, d: int, sign: int) -> fourier.Complex:
    n = _length(c, x[0], d)
    return _along(c, x, d, lambda y: fourier.unscaled(c, y, n, sign, n))


def _along(
    c: Call, x: fourier.Complex, d: int, change: Callable[[fourier.Complex], fourier.Complex]
) -> fourier.Complex:
    """Returns *x* with *change*, which works on the last dimension, applied to dimension *d*."""

    def swapped(y: Operand | None) -> Any:
        order = [k for k in range(x[0].rank) if k != d] + [d]
        return None if y is None else c.transpose(y, order)

    def back(y: Operand | None) -> Any:
        order = [*range(d), x[0].rank - 1, *range(d, x[0].rank - 1)]
        return None if y is None else c.transpose(y, order)

    real, imaginary = change((swapped(x[0]), swapped(x[1])))
    return back(real), back(imaginary)
