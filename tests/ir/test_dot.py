"""Dot products across lanes: their types, their text, and how they round."""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np
import pytest

from weft.codegen.interp import run
from weft.driver.function import build_function
from weft.ir import Dot, Expr, Ramp, Var, as_ramp, broadcast, dot, index, parse_expr
from weft.ir.expr.dot import GROUPS
from weft.loop import parse_program
from weft.support.dtypes import DType, bf16, f32, i8, i16, i32, u8
from weft.support.errors import TypeMismatch
from weft.targets import host

Array = Any
TINY = float(np.finfo(np.float32).tiny)


@pytest.mark.parametrize(("a", "b", "c"), GROUPS)
def test_text_round_trip(a: DType, b: DType, c: DType) -> None:
    g = GROUPS[a, b, c]
    scope: dict[str, Expr] = {
        "x": Var("x", a.with_lanes(4 * g)),
        "y": Var("y", b.with_lanes(4 * g)),
        "z": Var("z", c.with_lanes(4)),
    }
    made = Dot(scope["z"], scope["x"], scope["y"])
    assert str(made) == "dot(z, x, y)"
    assert parse_expr("dot(z, x, y)", scope) is made
    assert made.dtype is c.with_lanes(4)


@pytest.mark.parametrize(("a", "b", "c"), [(i8, u8, i32), (u8, i8, f32), (i16, i16, i16), (bf16, bf16, i32)])
def test_refused_for_other_types(a: DType, b: DType, c: DType) -> None:
    with pytest.raises(TypeMismatch, match="there is no dot product of"):
        Dot(Var("z", c.with_lanes(2)), Var("x", a.with_lanes(8)), Var("y", b.with_lanes(8)))


def test_refused_for_other_lanes() -> None:
    with pytest.raises(TypeMismatch, match="there is no dot product of u8x8 and i8x8 that is added to i32x4"):
        Dot(Var("z", i32.with_lanes(4)), Var("x", u8.with_lanes(8)), Var("y", i8.with_lanes(8)))


def test_integers_are_exact_and_wrap() -> None:
    acc = np.array([2**31 - 1, 0], np.int32)
    a, b = np.full(8, 255, np.uint8), np.full(8, -128, np.int8)
    b[:4] = 127
    np.testing.assert_array_equal(
        dot(acc, a, b), np.array([2**31 - 1 + 4 * 255 * 127 - 2**32, -4 * 255 * 128], np.int64)
    )


def test_a_single_sum_in_the_interpreter() -> None:
    text = "def f(A: u8[4], B: i8[4], C: i32[1]):\n    C[0] = dot(C[0], A[ramp(0, 1, 4)], B[ramp(0, 1, 4)])\n"
    c = np.array([5], np.int32)
    run(parse_program(text), [np.array([1, 2, 3, 200], np.uint8), np.array([1, -1, 1, 2], np.int8), c])
    assert c[0] == 5 + 1 - 2 + 3 + 400


def _halves(*values: float) -> Array:
    return np.array(values, np.float32).astype(ml_dtypes.bfloat16)


@pytest.mark.parametrize(
    ("acc", "even", "odd", "wanted"),
    [
        (2.0**24, (1.0, 1.0), (-1.0, 1.0), 2.0**24),  # the odd one first: 2^24 - 1 is a float, and plus 1 again
        (2.0**24, (-1.0, 1.0), (1.0, 1.0), 2.0**24 - 1),  # 2^24 + 1 is not, and is rounded to even
        (0.0, (2.0**-70, 2.0**-70), (0.0, 1.0), 0.0),  # too small to be normal
        (TINY / 2, (1.0, 0.0), (1.0, 0.0), 0.0),
        (0.0, (TINY / 2, 2.0**100), (0.0, 0.0), 0.0),
        (1.0, (float("inf"), 1.0), (0.0, 0.0), float("inf")),
    ],
)
def test_halves_round_twice(acc: float, even: tuple[float, float], odd: tuple[float, float], wanted: float) -> None:
    a, b = _halves(even[0], odd[0]), _halves(even[1], odd[1])
    assert dot(np.array([acc], np.float32), a, b)[0] == np.float32(wanted)


@pytest.mark.skipif(not host().has("avx512bf16"), reason="this machine has no AVX-512 BF16")
def test_halves_round_as_the_machine_does() -> None:
    count = 4096
    text = f"""
def f(A: bf16[{2 * count}], B: bf16[{2 * count}], C: f32[{count}]):
    for i in range(0, {count // 16}):
        C[ramp(i * 16, 1, 16)] = dot(C[ramp(i * 16, 1, 16)], A[ramp(i * 32, 1, 32)], B[ramp(i * 32, 1, 32)])
"""
    machine = build_function(parse_program(text))
    rng = np.random.default_rng(0)
    for low, high in ((-10, 10), (-40, 40), (-75, -50), (-126, 126)):
        c = _random(rng, count, 2 * low, 2 * high).astype(np.float32)
        a, b = (_random(rng, 2 * count, low, high).astype(ml_dtypes.bfloat16) for _ in range(2))
        wanted = dot(c, a, b)
        machine(a, b, c)
        np.testing.assert_array_equal(c.view(np.int32), wanted.view(np.int32))


def _random(rng: np.random.Generator, count: int, low: int, high: int) -> Array:
    """Numbers of both signs, with exponents in a range."""
    return np.ldexp(rng.uniform(-2, 2, count), np.clip(rng.integers(low, high + 1, count), -149, 126))


def _digits(r: Expr) -> Expr:
    four = broadcast(index(4), 64)
    return r // four * four + r % four


RUNS = [
    (lambda r, v: _digits(r), 0, 1),
    (lambda r, v: broadcast(v, 64) + _digits(r), None, 1),
    (lambda r, v: (r + broadcast(index(8), 64)) * broadcast(index(3), 64), 24, 3),
]


@pytest.mark.parametrize(("formula", "base", "stride"), RUNS)
def test_vectors_that_are_runs_of_numbers(formula: Any, base: int | None, stride: int) -> None:
    v = Var("v")
    made = as_ramp(formula(Ramp(index(0), index(1), 64), v))
    assert made is Ramp(v if base is None else index(base), index(stride), 64)


def test_vectors_that_are_not() -> None:
    r, v = Ramp(index(0), index(1), 8), Var("v")
    for e in (r % broadcast(index(4), 8), r // broadcast(v, 8), r * r, (r + broadcast(v, 8)) // broadcast(index(2), 8)):
        assert as_ramp(e) is e
