"""Conversions of 8-bit floats and of smaller types, bit by bit: every pattern, every number halfway, on every backend."""

from __future__ import annotations

import shutil
from functools import cache
from typing import Any, Final

import ml_dtypes
import numpy as np
import pytest
from hypothesis import strategies as st
from tests.interpreting import interpret
from tests.support.sampling import tried

from weft.driver.build import build
from weft.driver.options import CompileOptions
from weft.driver.runnable import runnable
from weft.graph import Graph
from weft.ir import const, index
from weft.loop import parse_program, print_program
from weft.ops import OPERATORS, TensorType
from weft.runtime.model import Model
from weft.support.dtypes import SCALARS, STORAGE, DType, f16, f32, f64, i32, u8
from weft.support.errors import TypeMismatch, WeftError

Array = np.ndarray[Any, Any]

FLOATS: Final = [t for t in STORAGE if t[0] == "f" and t != "f8e8m0fnu"]
POWERS: Final = SCALARS["f8e8m0fnu"]
WAYS: Final = [
    "cpu",
    "interpreter",
    pytest.param("c", marks=pytest.mark.skipif(shutil.which("cc") is None, reason="there is no C compiler")),
]
BLOCK: Final = 64


def patterns(dtype: DType) -> Array:
    """Returns each element that there is of a type."""
    return np.arange(1 << dtype.used_bits, dtype=np.uint8).view(dtype.numpy)


def run(g: Graph, way: str, inputs: list[Array]) -> list[Array]:
    made = build(g, "cpu" if way == "interpreter" else way, CompileOptions(), None, None)
    if way == "interpreter":
        return interpret(made, dict(zip([v.name for v in g.inputs], inputs, strict=True)))
    return Model(runnable(made.package, made.target)).run(inputs)


def encoded(x: Array, source: DType, targets: list[tuple[str, dict[str, Any]]], way: str) -> list[Array]:
    """Returns *x* as each of the types *targets*, whose attributes are given."""
    g = Graph()
    v = g.input("x", x.shape, source)
    for k, (target, attributes) in enumerate(targets):
        g.output(g.add("encode", [v], dtype=SCALARS[target], **attributes), f"y{k}")
    return run(g, way, [x])


def expected(x: Array, target: str, saturate: bool) -> Array:
    """Returns what ml_dtypes makes of *x*, out of range as ONNX says; ml_dtypes rounds a double twice, so that is done here."""
    dtype = SCALARS[target]
    if dtype.holds_floats and x.dtype == np.float64:
        x = to_odd(x)
    if not dtype.holds_floats:
        return np.where(np.abs(x) < 2.0**31, x, 0).astype(dtype.numpy)
    info = ml_dtypes.finfo(dtype.numpy)
    return (np.clip(x, float(info.min), float(info.max)) if saturate else x).astype(dtype.numpy)


def to_odd(x: Array) -> Array:
    """Returns doubles as float32, those that it lacks as the neighbour nearer to zero, with its last bit set."""
    near = x.astype(np.float32)
    towards_zero = np.where(np.abs(near.astype(np.float64)) > np.abs(x), np.nextafter(near, np.float32(0)), near)
    odd = (towards_zero.view(np.uint32) | 1).view(np.float32)
    return np.where((near == x) | np.isnan(x), near, odd)


@cache
def boundaries() -> Array:
    """Returns the numbers of all formats, those halfway between two, and the neighbours of all of these."""
    found = [
        np.array([0.0, -0.0, np.nan, -np.nan, np.inf, -np.inf, 3e38, -3e38, 2.0**31, -(2.0**31), 1e-45], np.float32)
    ]
    for t in FLOATS:
        values = patterns(SCALARS[t]).astype(np.float64)
        values = np.unique(values[np.isfinite(values)])
        above = values[-1] + (values[-1] - values[-2]) * np.array([0.5, 1.0])
        numbers = np.concatenate([values, (values[1:] + values[:-1]) / 2, above, -above]).astype(np.float32)
        found += [numbers, np.nextafter(numbers, np.float32(np.inf)), np.nextafter(numbers, np.float32(-np.inf))]
    return np.concatenate([*found, np.arange(-40, 40, 0.25, dtype=np.float32)])


@pytest.mark.parametrize("way", WAYS)
def test_each_pattern_is_decoded_as_ml_dtypes_does(way: str) -> None:
    g = Graph()
    given = [patterns(SCALARS[t]) for t in STORAGE]
    for t, x in zip(STORAGE, given, strict=True):
        g.output(g.add("decode", [g.input(t, x.shape, SCALARS[t])], dtype=f32), f"{t}_decoded")
    for t, x, y in zip(STORAGE, given, run(g, way, given), strict=True):
        np.testing.assert_array_equal(y.view(np.uint32), x.astype(np.float32).view(np.uint32), err_msg=t)


@pytest.mark.parametrize("way", WAYS)
def test_boundaries_are_encoded_as_ml_dtypes_does(way: str) -> None:
    targets = [(t, {"saturate": s}) for t in STORAGE if t != POWERS.name for s in (True, False)]
    for (t, attributes), y in zip(targets, encoded(boundaries(), f32, targets, way), strict=True):
        with np.errstate(all="ignore"):
            wanted = expected(boundaries(), t, attributes["saturate"])
        np.testing.assert_array_equal(y.view(np.uint8), wanted.view(np.uint8), err_msg=f"{t} {attributes}")


def test_what_is_decoded_is_encoded_again() -> None:
    for t in STORAGE:
        dtype = SCALARS[t]
        x = patterns(dtype)
        (y,) = encoded(x.astype(np.float32), f32, [(t, {"saturate": False})], "cpu")
        known = ~np.isnan(x.astype(np.float32))
        np.testing.assert_array_equal(y.view(np.uint8)[known], x.view(np.uint8)[known], err_msg=t)


@cache
def _encoders(source: DType) -> Model:
    g = Graph()
    v = g.input("x", (BLOCK,), source)
    for t in (*FLOATS, "int4", "uint2"):
        for saturate in (True, False):
            g.output(g.add("encode", [v], dtype=SCALARS[t], saturate=saturate), f"{t}_{saturate}")
    return Model(build(g, "cpu", CompileOptions(), None, None).package)


def _agrees(x: Array, source: DType) -> None:
    """Checks the conversions of *x*."""
    made = iter(_encoders(source).run([x]))
    for t in (*FLOATS, "int4", "uint2"):
        for saturate in (True, False):
            with np.errstate(all="ignore"):
                wanted = expected(x, t, saturate)
            np.testing.assert_array_equal(next(made).view(np.uint8), wanted.view(np.uint8), err_msg=f"{t} {saturate}")


def _near(exponent: int, steps: int, offset: float) -> float:
    """Returns a number beside a multiple of a sixteenth of a power of two, which is halfway in some format."""
    return float(2.0**exponent * (steps / 16) * (1 + offset))


DOUBLES: Final = st.one_of(
    st.floats(width=64),
    st.builds(
        _near, st.integers(-20, 18), st.integers(-32, 32), st.sampled_from([0.0, 2.0**-30, -(2.0**-30), 2.0**-52])
    ),
)


@tried(40, 400, st.lists(st.floats(width=32), min_size=BLOCK, max_size=BLOCK))
def test_any_single_is_encoded_as_ml_dtypes_does(values: list[float]) -> None:
    _agrees(np.array(values, np.float32), f32)


@tried(40, 400, st.lists(DOUBLES, min_size=BLOCK, max_size=BLOCK))
def test_any_double_is_rounded_once(values: list[float]) -> None:
    _agrees(np.array(values, np.float64), f64)


def test_each_half_is_encoded_as_ml_dtypes_does() -> None:
    x = np.arange(1 << 16, dtype=np.uint16).view(np.float16)
    targets = [(t, {"saturate": False}) for t in (*FLOATS, "int4", "uint4", "int2", "uint2")]
    for (t, _), y in zip(targets, encoded(x, f16, targets, "cpu"), strict=True):
        with np.errstate(all="ignore"):
            wanted = expected(x.astype(np.float32), t, saturate=False)
        np.testing.assert_array_equal(y.view(np.uint8), wanted.view(np.uint8), err_msg=t)


def test_integers_keep_their_low_bits_and_round_once() -> None:
    x = np.array([0, 7, 8, 9, 16, 17, 300, -1, -8, -9, -300, 2**24 + 1, -(2**31), 2**31 - 1], np.int32)
    targets: list[tuple[str, dict[str, Any]]] = [(t, {}) for t in STORAGE if t != POWERS.name]
    for (t, _), y in zip(targets, encoded(x, i32, targets, "cpu"), strict=True):
        wanted = expected(x.astype(np.float64), t, saturate=True) if t in FLOATS else x.astype(SCALARS[t].numpy)
        np.testing.assert_array_equal(y.view(np.uint8), wanted.view(np.uint8), err_msg=t)


@pytest.mark.parametrize("way", WAYS)
def test_packed_elements_are_taken_apart(way: str) -> None:
    g = Graph()
    x = np.random.default_rng(0).integers(0, 256, (3, 5, 7), np.uint8)
    small = [SCALARS[t] for t in STORAGE if SCALARS[t].used_bits < u8.bits]
    v = g.input("x", x.shape, u8)
    for t in small:
        g.output(g.add("unpack", [v], dtype=t), f"{t}_unpacked")
    for t, y in zip(small, run(g, way, [x]), strict=True):
        parts = [x >> place & ((1 << t.used_bits) - 1) for place in range(0, 8, t.used_bits)]
        assert y.dtype == t.numpy
        np.testing.assert_array_equal(y.view(np.uint8), np.concatenate(parts))


LEAST, MOST = 2.0**-127, 2.0**127
NAN: Final = float("nan")


@pytest.mark.parametrize(
    ("rounding", "saturate", "wanted"),
    [
        ("up", True, [LEAST, LEAST, LEAST, 2 * LEAST, 1, 2, 4, 4, 8, MOST, MOST, MOST, NAN, NAN]),
        ("down", True, [LEAST, LEAST, LEAST, LEAST, 1, 1, 2, 2, 4, MOST, MOST, MOST, NAN, NAN]),
        ("nearest", True, [LEAST, LEAST, LEAST, 2 * LEAST, 1, 1, 4, 4, 4, MOST, MOST, MOST, NAN, NAN]),
        ("up", False, [NAN, NAN, LEAST, 2 * LEAST, 1, 2, 4, 4, 8, MOST, NAN, NAN, NAN, NAN]),
        ("down", False, [NAN, NAN, LEAST, LEAST, 1, 1, 2, 2, 4, MOST, MOST, NAN, NAN, NAN]),
        ("nearest", False, [NAN, NAN, LEAST, 2 * LEAST, 1, 1, 4, 4, 4, MOST, NAN, NAN, NAN, NAN]),
    ],
)
@pytest.mark.parametrize("way", WAYS[:2])
def test_powers_of_two_are_rounded_as_onnx_says(rounding: str, saturate: bool, wanted: list[float], way: str) -> None:
    given = [0, LEAST / 2, LEAST, 1.5 * LEAST, 1, 1.25, 3, 3.5, 5, MOST, 1.5 * MOST, np.inf, -1, np.nan]
    (y,) = encoded(np.array(given, np.float32), f32, [(POWERS.name, {"rounding": rounding, "saturate": saturate})], way)
    np.testing.assert_array_equal(y.astype(np.float32), np.array(wanted, np.float32))


def test_the_one_constant_is_zero() -> None:
    program = """def f(x: f8e4m3fn[4], y: f8e4m3fn[4]):
    for i in range(0, 4):
        y[i] = select(i < 2, x[i], f8e4m3fn(0))
"""
    assert print_program(parse_program(program)) == program
    with pytest.raises(WeftError, match="1 is not of type f8e4m3fn"):
        parse_program(program.replace("(0)", "(1)"))
    with pytest.raises(TypeMismatch) as error:
        const(1, POWERS)
    assert str(error.value) == "there is no constant 1 of f8e8m0fnu\n  hint: reinterpret one of u8"


def test_types_that_are_not_converted() -> None:
    x = TensorType((), f32)
    with pytest.raises(TypeMismatch) as error:
        OPERATORS["encode"].infer([x], {"dtype": u8})
    assert str(error.value) == (
        "encode does not convert f32 to u8\n  hint: use cast between types that are computed with"
    )
    with pytest.raises(TypeMismatch) as error:
        OPERATORS["decode"].infer([x], {"dtype": f32})
    assert str(error.value).startswith("decode does not convert f32 to f32")
    with pytest.raises(TypeMismatch) as error:
        OPERATORS["encode"].infer([x], {"dtype": POWERS, "rounding": "even"})
    assert str(error.value) == "encode does not round 'even'\n  hint: use one of up, down, nearest"
    with pytest.raises(TypeMismatch, match="unpack does not convert u8 to f8e8m0fnu"):
        OPERATORS["unpack"].infer([TensorType((index(2),), u8)], {"dtype": POWERS})
    with pytest.raises(TypeMismatch) as error:
        OPERATORS["cast"].infer([x], {"dtype": POWERS})
    assert str(error.value) == ("a cast does not convert f32 to f8e8m0fnu\n  hint: use the operators decode and encode")
