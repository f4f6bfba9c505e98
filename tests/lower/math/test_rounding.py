"""Rounding, signs, classification and fmod, done without instructions for them, are exact."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
from tests.lower.math_harness import Array, computed, evaluate, every_nth, limits, specials, ulp_error

from weft.ir import Apply, Var
from weft.lower.math.expand import expand
from weft.support.dtypes import DType, f32, f64

TYPES = pytest.mark.parametrize("dtype", [f32, f64], ids=str)
FUSED = pytest.mark.parametrize("fused", [True, False], ids=["fused", "plain"])


def numbers(dtype: DType) -> Array:
    halves = np.arange(-20, 21) / 4
    edges = 2.0 ** np.arange(20, 56)
    around = np.concatenate([edges - 0.5, edges, edges + 0.5])
    exact = np.concatenate([halves, around, -around]).astype(dtype.numpy)
    return np.concatenate([every_nth(dtype, 262139), specials(dtype), exact])


def check_same_bits(got: Array, want: Array) -> None:
    np.testing.assert_array_equal(got, want)
    defined = ~np.isnan(want)
    np.testing.assert_array_equal(np.signbit(got[defined]), np.signbit(want[defined]))


def round_away(x: Array) -> Array:
    whole = np.trunc(x)
    result: Array = np.copysign(np.abs(whole) + (np.abs(x) - np.abs(whole) >= 0.5), x)
    return result


ROUNDINGS: dict[str, Callable[[Array], Array]] = {
    "floor": np.floor,
    "ceil": np.ceil,
    "trunc": np.trunc,
    "round_even": np.rint,
    "round_away": round_away,
    "abs": np.abs,
}


@pytest.mark.parametrize("name", ROUNDINGS)
@TYPES
def test_rounding(name: str, dtype: DType) -> None:
    x = numbers(dtype)
    with np.errstate(all="ignore"):
        want = ROUNDINGS[name](x)
    check_same_bits(computed(name, dtype, True, x), want)


@TYPES
def test_rounding_to_tf32(dtype: DType) -> None:
    x = numbers(dtype)
    with np.errstate(all="ignore"):
        near = np.ldexp(np.rint(np.ldexp(np.frexp(x)[0], 11)), np.frexp(x)[1] - 11).astype(dtype.numpy)
    usual = ~(np.abs(x) < limits(dtype.numpy).smallest_normal)  # others have fewer significant bits
    want = np.where(np.isfinite(x), near, x)
    check_same_bits(computed("round_tf32", dtype, True, x)[usual], want[usual])


@TYPES
def test_copysign(dtype: DType) -> None:
    x = numbers(dtype)
    check_same_bits(computed("copysign", dtype, True, x, x[::-1]), np.copysign(x, x[::-1]))


@TYPES
def test_classification(dtype: DType) -> None:
    x = numbers(dtype)
    np.testing.assert_array_equal(computed("is_nan", dtype, True, x), np.isnan(x))
    np.testing.assert_array_equal(computed("is_inf", dtype, True, x), np.isinf(x))


@TYPES
@FUSED
def test_fmod_is_exact(dtype: DType, fused: bool) -> None:
    rng = np.random.default_rng(6)
    y = (rng.normal(0, 1, 100_000) * 10.0 ** rng.uniform(-20, 20, 100_000)).astype(dtype.numpy)
    x = (y * 2.0 ** rng.uniform(-40, 32 if dtype is f32 else 74, y.size) * rng.choice([-1, 1], y.size)).astype(
        dtype.numpy
    )
    x[:1000] = y[:1000] * rng.integers(1, 100, 1000)
    check_same_bits(computed("fmod", dtype, fused, x, y), np.fmod(x, y))


@TYPES
def test_fmod_special_cases(dtype: DType) -> None:
    values = [0.0, -0.0, 1.5, -1.5, np.inf, -np.inf, np.nan]
    x, y = (v.ravel().astype(dtype.numpy) for v in np.meshgrid(values, values))
    with np.errstate(all="ignore"):
        want = np.fmod(x, y)
    check_same_bits(computed("fmod", dtype, True, x, y), want)


def test_nested_functions_are_expanded_too() -> None:
    x = Var("x", f32)
    e = expand(Apply("round_away", (Apply("abs", (x,)),)), frozenset())
    assert evaluate(e, {x: np.array([-2.5, 0.49999997], np.float32)}).tolist() == [3.0, 0.0]


@TYPES
@FUSED
def test_ldexp(dtype: DType, fused: bool) -> None:
    x = numbers(dtype)
    rng = np.random.default_rng(7)
    n = rng.integers(-300, 301, x.size) * (1 if dtype is f32 else 7)
    n[:4] = [-100_000, 100_000, 0, 1]
    with np.errstate(all="ignore"):
        want = np.ldexp(x, n)
    got = computed("ldexp", dtype, fused, x, n.astype(dtype.numpy))
    usual = np.isfinite(want) & (np.abs(want) >= limits(dtype.numpy).smallest_normal)
    check_same_bits(got[usual], want[usual])
    assert ulp_error(got, want.astype(np.float64)).max() <= 1.0, "a denormal result may be rounded twice"
