"""Discrete Fourier transforms along the last one, two or three dimensions."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Final

from weft.frontends.tensorflow_operators.call import SAVE_AGAIN, Call, ComplexTensor, Results
from weft.frontends.tensorflow_operators.registry import translates
from weft.graph.builder import Operand
from weft.graph.composites.numerics.fourier import Complex, fourier, inverse_to_real, resized_signal
from weft.graph.composites.run_time.late_fourier import late_inverse_to_real, late_resized, late_transform
from weft.ir import Const, Expr, as_expr
from weft.ops import simplify_size

_LONGEST: Final = 1 << 20
"""The longest transform, whose tables of cosines the graph has."""


@translates("FFT", "FFT2D", "FFT3D", "IFFT", "IFFT2D", "IFFT3D")
def of_complex(c: Call) -> Results:
    """The transform of complex numbers, or the inverse one."""
    x = c.complex()
    made: Complex = x.parts
    inverse = "IFFT" in c.op
    for d in _dimensions(c, x.real):
        n = x.real.shape[d]
        made = _along(c, made, d, lambda y, n=n: _transformed(c, y, n, n, inverse=inverse))  # type: ignore[misc]
    return _pair(c, made)


@translates("RFFT", "RFFT2D", "RFFT3D")
def of_real(c: Call) -> Results:
    """The transform of real numbers, cut or filled up to given lengths: of the last dimension the first half and one."""
    x = c.tensor()
    dims, lengths = _dimensions(c, x), _lengths(c)
    made: Complex = (x, None)
    for d, n in reversed(list(zip(dims, lengths, strict=True))):
        kept = simplify_size(n // 2 + 1) if d == x.rank - 1 else n
        made = _along(c, made, d, lambda y, n=n, kept=kept: _transformed(c, _sized(c, y, n), n, kept))  # type: ignore[misc]
    return _pair(c, made)


@translates("IRFFT", "IRFFT2D", "IRFFT3D")
def to_real(c: Call) -> Results:
    """The real numbers, of given lengths, whose transform begins with those given."""
    x = c.complex()
    dims, lengths = _dimensions(c, x.real), _lengths(c)
    made: Complex = x.parts
    for d, n in zip(dims[:-1], lengths[:-1], strict=True):
        made = _along(c, made, d, lambda y, n=n: _transformed(c, _sized(c, y, n), n, n, inverse=True))  # type: ignore[misc]
    n = lengths[-1]
    half = _sized(c, made, simplify_size(n // 2 + 1))
    if _is_known(n, half):
        return inverse_to_real(c, half, int(n.value))  # type: ignore[attr-defined]
    return late_inverse_to_real(c, half, n)


def _dimensions(c: Call, x: Operand) -> list[int]:
    """Returns the dimensions that are transformed: as many of the last as the operator's name says."""
    found = re.search(r"(\d)D$", c.op)
    count = int(found[1]) if found else 1
    if x.rank < count:
        c.fail(f"{x!r} has fewer than {count} dimensions", SAVE_AGAIN)
    return list(range(x.rank - count, x.rank))


def _lengths(c: Call) -> list[Expr]:
    made = [as_expr(n) for n in c.sizes(1, "the length of the transform")]
    if any(isinstance(n, Const) and not 1 <= int(n.value) <= _LONGEST for n in made):
        c.fail(f"its lengths are {', '.join(map(str, made))}; 1 to {_LONGEST:,} are supported", SAVE_AGAIN)
    return made


def _is_known(n: Expr, x: Complex) -> bool:
    return isinstance(n, Const) and isinstance(x[0].shape[-1], Const)


def _sized(c: Call, x: Complex, n: Expr) -> Complex:
    return resized_signal(c, x, int(n.value)) if _is_known(n, x) else late_resized(c, x, n)  # type: ignore[attr-defined]


def _transformed(c: Call, x: Complex, n: Expr, kept: Expr, *, inverse: bool = False) -> Complex:
    if isinstance(n, Const) and isinstance(kept, Const):
        return fourier(c, x, int(n.value), inverse=inverse, kept=int(kept.value))
    return late_transform(c, x, n, kept, inverse=inverse)


def _along(c: Call, x: Complex, d: int, change: Callable[[Complex], Complex]) -> Complex:
    """Returns *x* with *change*, which works on the last dimension, applied to dimension *d*."""
    rank = x[0].rank
    order = [k for k in range(rank) if k != d] + [d]
    back = [*range(d), rank - 1, *range(d, rank - 1)]
    real, imaginary = change((c.transpose(x[0], order), None if x[1] is None else c.transpose(x[1], order)))
    return c.transpose(real, back), None if imaginary is None else c.transpose(imaginary, back)


def _pair(c: Call, x: Complex) -> ComplexTensor:
    real, imaginary = x
    if imaginary is None:
        imaginary = c.add("full", shape=real.shape, value=0, dtype=real.dtype)
    return ComplexTensor(real, imaginary)
