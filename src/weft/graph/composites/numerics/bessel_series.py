"""Bessel functions of order 0 and 1, by Chebyshev series that are fitted to sums and integrals when they are first asked for.

Up to a bound the functions are power series (Abramowitz and Stegun, "Handbook of mathematical functions", 9.1.10 to
9.1.13, 9.6.10 to 9.6.13). Above it they are Hankel's integrals, which are smooth in 1 / x:

    H(x) = e^(i (x - order * pi / 2 - pi / 4)) * sqrt(2 / (pi x)) * h(i / 2x),    K(x) = e^-x * sqrt(pi / 2x) * h(1 / 2x)
    h(z) = integral of e^(-t^2) t^(2 order) (1 + z t^2)^(order - 1/2), over all t, divided by the same for z = 0
"""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import cache
from typing import Any, Final, TypeAlias

import numpy as np
from numpy.polynomial import Chebyshev

from weft.graph.builder.builder import Builder
from weft.graph.builder.partial_evaluator import Operand

Array: TypeAlias = "np.ndarray[Any, np.dtype[np.float64]]"

_DEGREE: Final = 36
_SERIES_TERMS: Final = 40
_NEAR: Final = 8.0
"""Where J, Y and I change from one series to the other."""
_NEAR_K: Final = 2.0
_EULER: Final = 0.57721566490153286


def bessel_j(b: Builder, x: Operand, order: int) -> Operand:
    """Returns J of *order* 0 or 1."""
    size = b.add("abs", x)
    near = _near(b, size, order, "j")
    made = _chosen(b, size, _NEAR, near, _oscillating(b, size, order, "cos"))
    return _odd(b, x, made) if order else made


def bessel_y(b: Builder, x: Operand, order: int) -> Operand:
    """Returns Y of *order* 0 or 1: NaN below 0, -infinity at 0."""
    log = b.add("log", _times(b, x, 0.5))
    near = b.add("add", _times(b, b.add("mul", log, bessel_j(b, x, order)), 2 / math.pi), _near(b, x, order, "y"))
    if order:
        near = b.add("sub", near, _times(b, b.add("reciprocal", x), 2 / math.pi))
    made = _chosen(b, x, _NEAR, near, _oscillating(b, x, order, "sin"))
    return _of_positive(b, x, made, -math.inf)


def bessel_i(b: Builder, x: Operand, order: int, *, scaled: bool) -> Operand:
    """Returns I of *order* 0 or 1, divided by e^|x| if *scaled*."""
    size = b.add("abs", x)
    near = b.add("mul", _near(b, size, order, "i"), b.add("exp", b.add("neg", size)))
    far = b.add(
        "mul", _series(b, size, _far_i(order), 0, 1 / _NEAR, inverse=True), b.add("rsqrt", _above(b, size, _NEAR))
    )
    made = _chosen(b, size, _NEAR, near, far)
    if not scaled:
        made = b.add("mul", made, b.add("exp", size))
    return _odd(b, x, made) if order else made


def bessel_k(b: Builder, x: Operand, order: int, *, scaled: bool) -> Operand:
    """Returns K of *order* 0 or 1, multiplied by e^x if *scaled*: NaN below 0, infinity at 0."""
    log = b.add("mul", b.add("log", _times(b, x, 0.5)), bessel_i(b, x, order, scaled=False))
    rest = _series(b, x, _near_k(order), 0, _NEAR_K)
    near = b.add("sub", rest, log)
    if order:
        near = b.add("add", b.add("mul", rest, _times(b, x, 0.5)), log)
        near = b.add("add", near, b.add("reciprocal", x))
    far = b.add(
        "mul", _series(b, x, _far_k(order), 0, 1 / _NEAR_K, inverse=True), b.add("rsqrt", _above(b, x, _NEAR_K))
    )
    growth = b.add("exp", x if scaled else b.add("neg", x))
    made = _chosen(
        b, x, _NEAR_K, b.add("mul", near, growth) if scaled else near, far if scaled else b.add("mul", far, growth)
    )
    return _of_positive(b, x, made, math.inf)


def _near(b: Builder, size: Operand, order: int, kind: str) -> Operand:
    """Returns the part of J, Y or I that is a power series, up to `_NEAR`."""
    made = _series(b, size, _near_fit(order, kind), 0, _NEAR)
    return b.add("mul", made, _times(b, size, 0.5)) if order else made


def _oscillating(b: Builder, x: Operand, order: int, first: str) -> Operand:
    """Returns the real part of Hankel's function (*first* is the cosine) or the imaginary one, from `_NEAR` on."""
    far = _above(b, x, _NEAR)
    angle = b.add("sub", far, b.scalar((2 * order + 1) * math.pi / 4, x.dtype))
    real, imaginary = (_series(b, x, _far_hankel(order, part), 0, 1 / _NEAR, inverse=True) for part in ("real", "imag"))
    cosine, sine = b.add("cos", angle), b.add("sin", angle)
    if first == "cos":
        wave = b.add("sub", b.add("mul", cosine, real), b.add("mul", sine, imaginary))
    else:
        wave = b.add("add", b.add("mul", sine, real), b.add("mul", cosine, imaginary))
    return b.add("mul", wave, b.add("rsqrt", far))


def _series(
    b: Builder, x: Operand, fit: tuple[float, ...], low: float, high: float, *, inverse: bool = False
) -> Operand:
    """Returns a Chebyshev series at *x*, or at its inverse, kept between *low* and *high* (Clenshaw's recurrence)."""
    at = (
        b.add("reciprocal", _above(b, x, 1 / high))
        if inverse
        else b.add("clip", x, b.scalar(low, x.dtype), b.scalar(high, x.dtype))
    )
    u = b.add("sub", _times(b, at, 2 / (high - low)), b.scalar((high + low) / (high - low), x.dtype))
    twice = b.add("add", u, u)
    last: Operand = b.scalar(0, x.dtype)
    made: Operand = b.scalar(fit[-1], x.dtype)
    for c in fit[-2:0:-1]:
        made, last = b.add("add", b.scalar(c, x.dtype), b.add("sub", b.add("mul", twice, made), last)), made
    return b.add("add", b.scalar(fit[0], x.dtype), b.add("sub", b.add("mul", u, made), last))


def _above(b: Builder, x: Operand, least: float) -> Operand:
    return b.add("maximum", x, b.scalar(least, x.dtype))


def _times(b: Builder, x: Operand, factor: float) -> Operand:
    return b.add("mul", x, b.scalar(factor, x.dtype))


def _chosen(b: Builder, x: Operand, bound: float, near: Operand, far: Operand) -> Operand:
    """Returns *near* up to a bound and *far* above it; NaN stays."""
    made = b.add("where", b.add("less", x, b.scalar(bound, x.dtype)), near, far)
    return b.add("where", b.add("is_nan", x), x, made)


def _odd(b: Builder, x: Operand, of_size: Operand) -> Operand:
    return b.add("where", b.add("less", x, b.scalar(0, x.dtype)), b.add("neg", of_size), of_size)


def _of_positive(b: Builder, x: Operand, made: Operand, at_zero: float) -> Operand:
    """Returns *made* where *x* is positive, *at_zero* at 0, and NaN below."""
    zero = b.scalar(0, x.dtype)
    others = b.add("where", b.add("equal", x, zero), b.scalar(at_zero, x.dtype), b.scalar(math.nan, x.dtype))
    return b.add("where", b.add("less", zero, x), made, others)


def _fitted(f: Callable[[Array], Array], low: float, high: float) -> tuple[float, ...]:
    """Returns the coefficients of a Chebyshev series, without those that double precision can't tell from 0."""
    made = Chebyshev.interpolate(f, _DEGREE, [low, high]).coef
    kept = np.nonzero(np.abs(made) > 1e-17 * np.abs(made).max())[0][-1] + 1
    return tuple(made[: max(kept, 2)].tolist())


def _power_series(x: Array, order: int, sign: int, weight: Callable[[int], float]) -> Array:
    """Returns the sum of `weight(k) sign^k (x / 2)^(2 k) / (k! (k + order)!)`."""
    total, term = np.zeros_like(x), np.ones_like(x)
    for k in range(_SERIES_TERMS):
        total += weight(k) * term
        term = term * (sign * (x / 2) ** 2 / ((k + 1) * (k + 1 + order)))
    return total


def _digammas(order: int) -> Callable[[int], float]:
    """Returns the sum of the digamma function at k + 1 and at k + 1 + *order*, as a function of k."""

    def weight(k: int) -> float:
        return sum(1 / n for n in range(1, k + 1)) + sum(1 / n for n in range(1, k + order + 1)) - 2 * _EULER

    return weight


@cache
def _near_fit(order: int, kind: str) -> tuple[float, ...]:
    if kind == "y":
        return _fitted(lambda x: -_power_series(x, order, -1, _digammas(order)) / np.pi, 0, _NEAR)
    return _fitted(lambda x: _power_series(x, order, -1 if kind == "j" else 1, lambda k: 1.0), 0, _NEAR)


@cache
def _near_k(order: int) -> tuple[float, ...]:
    sign = -1 if order else 1
    return _fitted(lambda x: sign * _power_series(x, order, 1, _digammas(order)) / 2, 0, _NEAR_K)


@cache
def _far_k(order: int) -> tuple[float, ...]:
    return _fitted(lambda v: np.sqrt(np.pi / 2) * _hankel(order, v / 2).real, 0, 1 / _NEAR_K)


@cache
def _far_hankel(order: int, part: str) -> tuple[float, ...]:
    return _fitted(lambda v: np.sqrt(2 / np.pi) * getattr(_hankel(order, 0.5j * v), part), 0, 1 / _NEAR)


@cache
def _far_i(order: int) -> tuple[float, ...]:
    """Of sqrt(x) I(x) / e^x: an integral over the circle of e^(x cos a - x), whose peak is as wide as 1 / sqrt(x)."""

    def f(v: Array) -> Array:
        angle = np.linspace(0, np.pi, 4001)[:, None]
        x = 1 / np.maximum(v, 1e-5)
        values = np.sqrt(x) * np.exp(x * (np.cos(angle) - 1)) * np.cos(order * angle)
        return np.asarray((values.sum(0) - (values[0] + values[-1]) / 2) / 4000)

    return _fitted(f, 0, 1 / _NEAR)


def _hankel(order: int, z: Any) -> Any:
    """Returns h(z) by the rule of trapezoids, which is exact to the last digits for an integrand that decays like this."""
    t = np.linspace(-7, 7, 1401)[:, None]
    weights = np.exp(-(t**2)) * t ** (2 * order)
    return (weights * (1 + np.atleast_1d(np.asarray(z, complex)) * t**2) ** (order - 0.5)).sum(0) / weights.sum()
