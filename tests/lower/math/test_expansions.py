"""Every function of one operand is as accurate as its table entry says, for every kind of number."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from typing import Any

import mpmath
import numpy as np
import pytest
from tests.lower.math_harness import (
    Array,
    computed,
    evaluate,
    every_nth,
    expanded,
    limits,
    reference,
    specials,
    stratified,
    ulp_error,
)

from weft.ir import INTRINSICS, Mul, post_order
from weft.lower.math.expansions import EXPANSIONS
from weft.support.dtypes import DType, bf16, f16, f32, f64


def held(fn: Callable[[Any], Any], bound: float = 2000.0) -> Callable[[Any], Any]:
    """Holds the operand within *bound*, where *fn* has long reached its limit: mpmath would compute on and on."""
    return lambda x: fn(min(max(x, -bound), bound)) if x == x else x


EXACT: dict[str, Callable[[Any], Any]] = {
    "exp": held(mpmath.exp),
    "exp2": held(lambda x: mpmath.mpf(2) ** x),
    "expm1": held(mpmath.expm1),
    "log": mpmath.log,
    "log2": lambda x: mpmath.log(x, 2),
    "log1p": mpmath.log1p,
    "sin": mpmath.sin,
    "cos": mpmath.cos,
    "tan": mpmath.tan,
    "asin": mpmath.asin,
    "acos": mpmath.acos,
    "atan": mpmath.atan,
    "sinh": held(mpmath.sinh),
    "cosh": held(mpmath.cosh),
    "tanh": held(mpmath.tanh),
    "asinh": mpmath.asinh,
    "acosh": mpmath.acosh,
    "atanh": mpmath.atanh,
    "erf": mpmath.erf,
    "sigmoid": held(lambda x: 1 / (1 + mpmath.exp(-x))),
    "rsqrt": lambda x: 1 / mpmath.sqrt(x) if x else mpmath.inf,  # the sign of a zero is no matter for mpmath
}
DOUBLE: dict[str, Callable[[Array], Array]] = {
    "asin": np.arcsin,
    "acos": np.arccos,
    "atan": np.arctan,
    "asinh": np.arcsinh,
    "acosh": np.arccosh,
    "atanh": np.arctanh,
    "erf": lambda x: np.array([math.erf(v) for v in x.tolist()]),
    "sigmoid": lambda x: np.where(x < 0, np.exp(x) / (1 + np.exp(x)), 1 / (1 + np.exp(-x))),
    "rsqrt": lambda x: 1 / np.sqrt(x),
}
FUSED = pytest.mark.parametrize("fused", [True, False], ids=["fused", "plain"])
TYPES = pytest.mark.parametrize("dtype", [f32, f64], ids=str)
NAMES = pytest.mark.parametrize("name", EXACT)


def check(
    name: str, dtype: DType, fused: bool, x: Array, high: Array, low: Array | float = 0.0, scales: bool = False
) -> None:
    y = computed(name, dtype, fused, x, scales=scales)
    assert y.dtype == dtype.numpy
    error = ulp_error(y, high, low)
    worst = int(np.argmax(error))
    allowed = EXPANSIONS[name].max_ulp[dtype].of(fused)
    assert error[worst] <= allowed, f"{name}({x[worst]!r}) = {y[worst]!r}, not {high[worst]!r}: {error[worst]:.3f} ulp"


@pytest.mark.sampled(14)
@NAMES
@TYPES
def test_against_exact_values(name: str, dtype: DType) -> None:
    rng = np.random.default_rng(1)
    middle = np.concatenate([rng.normal(0, 1, 300), rng.uniform(-110, 110, 300), 1 + rng.normal(0, 0.01, 100)])
    points = [stratified(dtype, seed=2, per_exponent=2), middle.astype(dtype.numpy), specials(dtype)]
    x = np.concatenate(points)
    x = x[(x != 0) | ~np.signbit(x)]
    high, low = reference(EXACT[name], x)
    for fused, scales in ((True, False), (False, False), (True, True)):
        check(name, dtype, fused, x, high, low, scales)


def in_double(name: str, x: Array) -> Array:
    """Returns the function computed in float64, which is exact enough to judge float32 by."""
    fn = DOUBLE[name] if name in DOUBLE else getattr(np, name)
    with np.errstate(all="ignore"):
        exact: Array = fn(x.astype(np.float64))
    return exact


def sweep(name: str, fused: bool, step: int, first: int) -> None:
    x = every_nth(f32, step, first)
    check(name, f32, fused, x, in_double(name, x))


TURNS = {
    f32: [1e5, 16367173.0 * 2.0**72, 12000000.0, 1e8, 1e10, 1e30, 3.4028235e38],
    f64: [1e6, 6381956970095103.0 * 2.0**797, 1e8, 1e16, 1e22, 1e300, 1.7976931348623157e308],
}
"""Large angles: where they begin, the nearest to a multiple of pi / 2 (Muller, "Elementary Functions", section 11.2), others."""


@pytest.mark.parametrize("name", ["sin", "cos", "tan"])
@TYPES
@FUSED
def test_large_angles(name: str, dtype: DType, fused: bool) -> None:
    multiples = [float(k * mpmath.pi / 2) for k in (10**6, 10**7 + 1, 2**40 + 3, 2**60 + 5)]
    near = np.array([*TURNS[dtype], *multiples], dtype.numpy)
    x = np.concatenate([near, np.nextafter(near, dtype.numpy.type(0)), -near])
    check(name, dtype, fused, x, *reference(EXACT[name], x))
    assert np.isnan(computed(name, dtype, fused, np.array([np.inf, -np.inf, np.nan], dtype.numpy))).all()


@pytest.mark.sampled(14)
@NAMES
@FUSED
def test_over_the_whole_range(name: str, fused: bool) -> None:
    sweep(name, fused, step=19997, first=0)


def slices() -> Iterator[int]:
    """Sixteen starting points which together make up a sweep of every 251st number."""
    return iter(range(0, 251 * 16, 251))


@pytest.mark.slow
@NAMES
@FUSED
def test_over_the_whole_range_densely(name: str, fused: bool) -> None:
    for first in slices():
        sweep(name, fused, step=251 * 16, first=first)


@pytest.mark.slow
@NAMES
@FUSED
def test_float64_densely(name: str, fused: bool) -> None:
    rng = np.random.default_rng(3)
    parts = [
        rng.normal(0, 1, 4000),
        rng.uniform(-720, 720, 4000),
        10 ** rng.uniform(-9, 9, 4000),
        1 + rng.normal(0, 1e-3, 4000),
    ]
    x = np.concatenate(parts)
    check(name, f64, fused, x, *reference(EXACT[name], x))


ODD = ["asin", "asinh", "atan", "atanh", "erf", "expm1", "log1p", "sin", "sinh", "tan", "tanh"]


@pytest.mark.parametrize("name", ODD)
@TYPES
@FUSED
def test_zero_keeps_its_sign(name: str, dtype: DType, fused: bool) -> None:
    y = computed(name, dtype, fused, np.array([0.0, -0.0], dtype.numpy))
    assert y.tolist() == [0.0, 0.0]
    assert np.signbit(y).tolist() == [False, True]


@TYPES
def test_rsqrt_of_zero_is_infinite_with_its_sign(dtype: DType) -> None:
    assert computed("rsqrt", dtype, True, np.array([0.0, -0.0], dtype.numpy)).tolist() == [math.inf, -math.inf]


@pytest.mark.parametrize("name", ["sin", "cos", "tanh", "erf", "sigmoid"])
@TYPES
@FUSED
def test_stays_within_one(name: str, dtype: DType, fused: bool) -> None:
    quarter_turns = np.arange(1, 20000) * (np.pi / 2)
    x = np.concatenate([every_nth(dtype, 65521), quarter_turns.astype(dtype.numpy)])
    y = computed(name, dtype, fused, x[np.isfinite(x)])
    assert np.all(np.abs(y) <= 1)


@TYPES
@FUSED
@pytest.mark.parametrize(("name", "zero_at"), [("exp", (-104.0, -746.0)), ("exp2", (-151.0, -1076.0))])
def test_nothing_underflows_on_the_way_to_zero(
    name: str, zero_at: tuple[float, float], dtype: DType, fused: bool
) -> None:
    """Many processors take a hundred times as long for a product that underflows."""
    x = np.array([zero_at[dtype is f64], zero_at[dtype is f64] * 4, -1e30], dtype.numpy)
    operands, e = expanded(name, dtype, fused)
    for n in post_order(e):
        if isinstance(n, Mul):
            a, b, product = (np.abs(evaluate(k, {operands[0]: x})) for k in (n.a, n.b, n))
            assert not ((product < 2.0 ** (-1022 if dtype is f64 else -126)) & (a > 0) & (b > 0)).any(), n
    assert not evaluate(e, {operands[0]: x}).any()


@TYPES
@FUSED
@pytest.mark.parametrize("scales", [False, True])
def test_exponentials_may_be_zero_where_they_are_no_normal_numbers(dtype: DType, fused: bool, scales: bool) -> None:
    least = -708.39 if dtype is f64 else -87.33
    rng = np.random.default_rng(6)
    near = (
        rng.uniform(-660, 0, 2000) if dtype is f64 else rng.uniform(least, 0, 2000)
    )  # the rest of the exact one is normal
    x = np.concatenate([near, rng.uniform(0, 88, 100), [0.0, -0.0]]).astype(dtype.numpy)
    error = ulp_error(computed("exp_flushed", dtype, fused, x, scales=scales), *reference(EXACT["exp"], x))
    assert error.max() <= EXPANSIONS["exp_flushed"].max_ulp[dtype].of(fused)
    below = np.array([least - 0.01, least - 0.3, least - 0.5, least - 5, 1.5 * least, -1e30, -np.inf], dtype.numpy)
    made, normal = computed("exp_flushed", dtype, fused, below, scales=scales), limits(dtype.numpy).smallest_normal
    assert ((made >= 0) & (made < normal)).all()
    assert not made[-3:].any()
    assert np.isnan(computed("exp_flushed", dtype, fused, np.array([np.nan], dtype.numpy), scales=scales)).all()


@TYPES
def test_the_larger_number_is_either_operand_where_one_is_nan(dtype: DType) -> None:
    a, b = (np.array(x, dtype.numpy) for x in ([1, 2, -np.inf, np.nan, 3, np.nan], [2, 1, -5, 7, np.nan, np.nan]))
    y = computed("max_number", dtype, True, a, b)
    np.testing.assert_array_equal(y[:3], [2, 2, -5])
    assert all(v != v or v == w for v, w in zip(y[3:5].tolist(), (7, 3), strict=True))
    assert np.isnan(y[5])


@TYPES
@FUSED
def test_landmarks(dtype: DType, fused: bool) -> None:
    one, zero = np.array([1.0], dtype.numpy), np.array([0.0], dtype.numpy)
    assert computed("exp", dtype, fused, zero) == 1
    assert computed("cos", dtype, fused, zero) == 1
    assert computed("log", dtype, fused, one) == 0
    assert computed("log2", dtype, fused, one * 8) == 3
    assert computed("exp2", dtype, fused, one * -7) == 2.0**-7
    assert computed("sigmoid", dtype, fused, zero) == 0.5


@pytest.mark.sampled(10)
@pytest.mark.parametrize("dtype", [f16, bf16], ids=str)
@NAMES
def test_half_precision_is_rounded_once(name: str, dtype: DType) -> None:
    with np.errstate(all="ignore"):
        wide = np.arange(2**16, dtype=np.uint16).view(dtype.numpy).astype(np.float32)
        x = wide.astype(dtype.numpy)
        y = computed(name, dtype, True, x)
        direct = computed(name, f32, True, wide).astype(dtype.numpy)
    assert y.dtype == x.dtype
    np.testing.assert_array_equal(y.astype(np.float32), direct.astype(np.float32))


def test_every_declared_function_that_is_not_everywhere_has_an_expansion() -> None:
    assert INTRINSICS.keys() - EXPANSIONS.keys() == {"sqrt", "unlikely", "watched"}
    assert EXPANSIONS.keys() <= INTRINSICS.keys()
