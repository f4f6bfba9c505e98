"""What samples of operators are made of: arrays of several kinds, and extremes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import product
from typing import Any, Final, TypeAlias

import numpy as np

from weft.support.dtypes import bf16

Array: TypeAlias = "np.ndarray[Any, np.dtype[Any]]"

LONG: Final = 4096
"""Terms of a long sum: more than the significand of a 16-bit float counts to."""

LARGE: Final = 60000.0
"""Close to the largest number of float16; sums and squares of such are beyond it."""


@dataclass(frozen=True)
class Sample:
    """Inputs and attributes of an operator.

    *magnitude* is the size of what is added up on the way, where results may be small differences of that.
    """

    inputs: Sequence[Array | None]
    attributes: Mapping[str, Any] = field(default_factory=dict)
    magnitude: float = 0.0


def few(*shape: int, unsigned: bool = False, seed: int = 0) -> Array:
    """Returns small integers of 8 bits."""
    made = np.random.default_rng(seed).integers(0 if unsigned else -60, 60, shape)
    return made.astype(np.uint8 if unsigned else np.int8)


def numbers(*shape: int, scale: float = 1.0, mean: float = 0.0, seed: int = 0) -> Array:
    """Returns normally distributed numbers."""
    return np.asarray(np.random.default_rng(seed).standard_normal(shape) * scale + mean)


def parts(*shape: int) -> Array:
    """Returns numbers of bf16."""
    return numbers(*shape).astype(bf16.numpy)


def between(low: float, high: float, *shape: int) -> Array:
    """Returns uniformly distributed numbers."""
    return np.asarray(np.random.default_rng(1).uniform(low, high, shape))


def same(value: float, *shape: int) -> Array:
    """Returns one number over and over."""
    return np.full(shape, float(value))


def ints(*values: int) -> Array:
    """Returns a vector of int64."""
    return np.array(values, np.int64)


EXTREMES: Final = np.array(
    [
        0.0,
        -0.0,
        1.0,
        -1.0,
        0.5,
        -2.5,
        1e-3,
        6e-8,
        -1e-7,
        3e-5,
        -6.1e-5,
        255.5,
        -300.0,
        2049.0,
        LARGE,
        -LARGE,
        65504.0,
        1e-38,
        np.inf,
        -np.inf,
        np.nan,
        88.0,
        -104.0,
        11.5,
        -17.3,
    ]
)
"""Zeros, denormals of float16, the borders of its integers and of exponentials, the largest, and what is no number."""

FINITE: Final = EXTREMES[np.isfinite(EXTREMES)]
PAIRS: Final = tuple([np.array(v) for v in zip(*product(EXTREMES, EXTREMES), strict=True)])
ELEMENTS: Final = np.concatenate([EXTREMES, numbers(40), numbers(20, scale=100)])
INTEGERS: Final = (ints(7, -7, 0, 5), ints(2, 2, 3, -5))
BOOLS: Final = (np.array([True, True, False, False]), np.array([True, False, True, False]))
ROWS: Final = [numbers(2, LONG), same(LARGE / 16, 2, LONG), same(3e-6, 2, LONG), numbers(2, 300, mean=2000, scale=2)]
"""Long rows: ordinary, whose sum is beyond float16, denormal, and of a small variance around a large mean."""

INFINITE: Final = np.array([[np.inf, 1, -np.inf], [-np.inf] * 3, [-np.inf, 2, 3], [np.nan, np.inf, 1]])

ROW: Final = {"axes": (1,), "keepdims": False}
IMAGE: Final = [numbers(1, 4, 6, 6), same(3000, 1, 4, 6, 6), numbers(1, 4, 6, 6, scale=1e-5)]
UNPADDED: Final = {"pads": (0, 0, 0, 0), "dilations": (1, 1)}
WINDOW: Final = {"kernel": (3, 3), "strides": (1, 1), "pads": (1, 1, 1, 1)}
