"""Discrete Fourier transforms as matrix products with tables of cosines and sines.

A length n = n1 * n2 is two shorter transforms with a rotation between them (Gentleman and Sande, 1966; the four steps of Bailey,
1990), so that it takes n * (n1 + n2) multiplications in products of matrices, and not n * n:

    Y[k1, j2] = sum over j1 of x[j1 * n2 + j2] * w(n1)^(j1 * k1)
    X[k1 + k2 * n1] = sum over j2 of Y[k1, j2] * w(n)^(j2 * k1) * w(n2)^(j2 * k2)

A long prime one is a convolution with a chirp, by transforms of a power of two (Bluestein, 1970). The real and the imaginary part
are two tensors; one that is zero is None. The transformed axis is the last.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, TypeAlias

import numpy as np

from weft.cost import LONGEST_PRIME, SHORT_TRANSFORM
from weft.graph.builder.builder import Builder
from weft.graph.builder.constants import CompileTimeConstant
from weft.graph.builder.partial_evaluator import Operand

Complex: TypeAlias = tuple[Operand, Operand | None]
Factors: TypeAlias = "np.ndarray[Any, np.dtype[np.complex128]]"


def fourier(b: Builder, x: Complex, n: int, *, inverse: bool = False, kept: int | None = None) -> Complex:
    """Returns the transform of *x* [..., n]: its first *kept* elements, or all of them.

    That is the sum of `x[j] * exp(-2 pi i j k / n)` for each k; an *inverse* one has the other sign, and is divided by *n*.
    """
    made = unscaled(b, x, n, 1 if inverse else -1, n if kept is None else kept)
    share = b.scalar(1 / n, made[0].dtype)
    return _each(made, lambda y: b.add("mul", y, share)) if inverse else made


def inverse_to_real(b: Builder, x: Complex, n: int) -> Operand:
    """Returns the *n* real numbers whose transform begins with *x* [..., n // 2 + 1].

    Imaginary parts that the transform of real numbers can't have, those of the first and of the middle element, count as zero.
    """
    k = np.arange(n)
    mirrored = np.where(k <= n // 2, k, n - k)
    signs = np.where((k == 0) | (2 * k == n), 0, np.where(k <= n // 2, 1, -1))
    at = CompileTimeConstant(mirrored.astype(np.int64))
    real, imaginary = _each(x, lambda y: b.add("gather", y, at, axis=y.rank - 1))
    if imaginary is not None:
        imaginary = b.add("mul", imaginary, CompileTimeConstant(signs.astype(imaginary.dtype.numpy)))
    return fourier(b, (real, imaginary), n, inverse=True)[0]


def unscaled(b: Builder, x: Complex, n: int, sign: int, kept: int) -> Complex:
    """Returns the first *kept* elements of the transform, the exponent of the given *sign*, without a scale."""
    first = max(d for d in range(1, math.isqrt(n) + 1) if n % d == 0)
    if n <= SHORT_TRANSFORM or (first == 1 and n <= LONGEST_PRIME):
        return _multiplied(b, x, _powers(np.outer(np.arange(n), np.arange(kept)), n, sign), "matmul")
    if first == 1:
        return _by_convolution(b, x, n, sign, kept)
    second = n // first
    lead = list(x[0].shape[:-1])

    def swapped(y: Operand) -> Operand:
        """Exchanges the last two dimensions."""
        return b.transpose(y, [*range(len(lead)), len(lead) + 1, len(lead)])

    columns = _each(x, lambda y: swapped(b.reshape(y, [*lead, first, second])))  # [..., j2, j1]
    inner = unscaled(b, columns, first, sign, first)  # [..., j2, k1]
    turned = _multiplied(b, inner, _powers(np.outer(np.arange(second), np.arange(first)), n, sign), "mul")
    needed = -(-kept // first)
    outer = unscaled(b, _each(turned, swapped), second, sign, needed)  # [..., k1, k2]
    flat = _each(outer, lambda y: b.reshape(swapped(y), [*lead, needed * first]))
    return _each(flat, lambda y: _resized(b, y, kept))


def _by_convolution(b: Builder, x: Complex, n: int, sign: int, kept: int) -> Complex:
    """Returns the transform by 2 j k = j^2 + k^2 - (k - j)^2: a product with a chirp, a convolution with it, and a product."""
    size = 1 << (2 * n - 1).bit_length()
    chirp = _powers(np.arange(n) ** 2, 2 * n, sign)
    filter_ = np.zeros(size, np.complex128)
    filter_[:n] = chirp.conj()
    filter_[size - n + 1 :] = chirp[:0:-1].conj()
    given = _each(_multiplied(b, x, chirp, "mul"), lambda y: _resized(b, y, size))
    spectrum = _multiplied(b, unscaled(b, given, size, -1, size), np.fft.fft(filter_) / size, "mul")
    return _multiplied(b, unscaled(b, spectrum, size, 1, kept), chirp[:kept], "mul")


def resized_signal(b: Builder, x: Complex, n: int) -> Complex:
    """Returns a signal of a known length, cut or filled with zeros to *n* elements."""
    return _each(x, lambda y: _resized(b, y, n))


def _resized(b: Builder, x: Operand, n: int) -> Operand:
    """Returns *x* cut or filled with zeros along its last dimension, of a known size, to *n* elements."""
    axis, size = x.rank - 1, int(getattr(x.shape[-1], "value", n))
    if size > n:
        return b.add("slice", x, starts=(0,), ends=(n,), axes=(axis,), steps=(1,))
    if size == n:
        return x
    return b.add("pad", x, pads=(*[0] * (2 * x.rank - 1), n - size), value=0)


def _each(x: Complex, change: Callable[[Operand], Operand]) -> Complex:
    return change(x[0]), None if x[1] is None else change(x[1])


def _powers(exponents: np.ndarray[Any, np.dtype[np.int64]], n: int, sign: int) -> Factors:
    """Returns `exp(sign * 2 pi i * exponents / n)`; exponents are reduced first, so that no angle is large."""
    return np.asarray(np.exp(sign * 2j * np.pi * (exponents % n) / n), np.complex128)


def _multiplied(b: Builder, x: Complex, factors: Factors, op: str) -> Complex:
    """Returns *x* times complex constants, by *op*: element by element, or as a product of matrices."""
    real, imaginary = x
    parts = [
        CompileTimeConstant(np.ascontiguousarray(f).astype(real.dtype.numpy)) for f in (factors.real, factors.imag)
    ]
    by_real, by_imaginary = (b.add(op, real, p) for p in parts)
    if imaginary is None:
        return by_real, by_imaginary
    own = [b.add(op, imaginary, p) for p in parts]
    return b.add("sub", by_real, own[1]), b.add("add", by_imaginary, own[0])
