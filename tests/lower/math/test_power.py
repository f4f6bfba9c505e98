"""`pow` is accurate over its range and follows IEEE 754 in every special case."""

from __future__ import annotations

import itertools
import math

import mpmath
import numpy as np
import pytest
from tests.lower.math_harness import Array, computed, reference, specials, ulp_error

from weft.lower.math.expansions import EXPANSIONS
from weft.support.dtypes import DType, f32, f64

FUSED = pytest.mark.parametrize("fused", [True, False], ids=["fused", "plain"])
TYPES = pytest.mark.parametrize("dtype", [f32, f64], ids=str)
LARGEST = {f32: (-150.0, 128.0), f64: (-1075.0, 1024.0)}


def operands(dtype: DType, count: int, seed: int) -> tuple[Array, Array]:
    """Returns x and y such that x^y covers all exponents evenly, for x of all sizes and for x near 1."""
    rng = np.random.default_rng(seed)
    low, high = LARGEST[dtype]
    far = np.exp2(rng.uniform(low + 2, high - 1, count))
    near = 1 + rng.uniform(-0.45, 0.45, 2 * count) * 10.0 ** rng.uniform(-5, 0, 2 * count)
    x = np.concatenate([far, near]).astype(dtype.numpy)
    with np.errstate(all="ignore"):
        y = (rng.uniform(low, high, 3 * count) / np.log2(x.astype(np.float64))).astype(dtype.numpy)
    return x[x != 1], y[x != 1]


def check(dtype: DType, fused: bool, x: Array, y: Array) -> None:
    z = computed("pow", dtype, fused, x, y)
    error = ulp_error(z, *reference(lambda a, b: mpmath.exp(b * mpmath.log(a)), x, y))
    worst = int(np.argmax(error))
    allowed = EXPANSIONS["pow"].max_ulp[dtype].of(fused)
    assert error[worst] <= allowed, f"pow({x[worst]!r}, {y[worst]!r}) = {z[worst]!r}: {error[worst]:.3f} ulp"


@TYPES
@FUSED
def test_over_the_whole_range(dtype: DType, fused: bool) -> None:
    check(dtype, fused, *operands(dtype, count=1000, seed=4))


@pytest.mark.slow
@TYPES
@FUSED
def test_over_the_whole_range_densely(dtype: DType, fused: bool) -> None:
    check(dtype, fused, *operands(dtype, count=40000, seed=5))


def ieee_pow(x: float, y: float) -> float:
    """What C's pow returns, where Python's raises in part."""
    odd = abs(math.fmod(y, 2)) == 1 if math.isfinite(y) else False
    try:
        return math.pow(x, y)
    except OverflowError:
        return -math.inf if x < 0 and odd else math.inf
    except ValueError:
        return math.nan if x else math.copysign(math.inf, x if odd else 1.0)


@TYPES
@FUSED
def test_special_cases(dtype: DType, fused: bool) -> None:
    whole = np.array([2.5, 4, 5, 7, 1e10, 2**24 - 1, 2**53 - 1], dtype.numpy)
    values = np.concatenate([specials(dtype), whole, -whole])
    x, y = np.array(list(itertools.product(values, values)), dtype.numpy).T
    z = computed("pow", dtype, fused, x, y)
    want = np.array([ieee_pow(a, b) for a, b in zip(x.tolist(), y.tolist(), strict=True)])
    error = ulp_error(z, want)
    wrong = (error > EXPANSIONS["pow"].max_ulp[dtype].of(fused)) | (np.signbit(z) != np.signbit(want)) & ~np.isnan(want)
    assert not wrong.any(), [(a, b, c, d) for a, b, c, d in zip(x[wrong], y[wrong], z[wrong], want[wrong], strict=True)]


@TYPES
@FUSED
def test_small_whole_powers_are_exact(dtype: DType, fused: bool) -> None:
    x, y = np.array(list(itertools.product([-4, -2, -1, 0.25, 0.5, 1, 2, 4, 8], range(-8, 9))), dtype.numpy).T
    np.testing.assert_array_equal(computed("pow", dtype, fused, x, y), np.power(x, y))
