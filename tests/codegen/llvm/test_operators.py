"""Every operator of every type, scalar and vector, computes what NumPy does."""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import numpy as np
import pytest
from tests.codegen.llvm.harness import TARGETS, Array, call, elementwise, machine_for, same

from weft.ir import (
    Add,
    And,
    Binary,
    BitAnd,
    BitOr,
    BitXor,
    Div,
    Eq,
    Expr,
    FloorDiv,
    FloorMod,
    Le,
    Lt,
    Max,
    Min,
    Mul,
    Ne,
    Neg,
    Not,
    Or,
    Select,
    ShiftLeft,
    ShiftRight,
    Sub,
    TruncDiv,
    TruncMod,
    cast,
    const,
)
from weft.ir.expr.constructors import binary
from weft.loop import Function
from weft.support.dtypes import SCALARS, DType, bf16, bool_, f16, f32, f64, i8, i16, i32, i64, u8, u16, u32, u64

INTS = [i8, i16, i32, i64, u8, u16, u32, u64]
FLOATS = [f16, bf16, f32, f64]
COUNT = 48
LANES = [1, 4, 16]
EVERYWHERE = pytest.mark.parametrize(("name", "lanes"), [(n, k) for n in TARGETS for k in LANES])


def numbers(dtype: DType, seed: int) -> Array:
    """Values of *dtype*, the awkward ones first; a second operand (odd *seed*) is never zero or minus one in these."""
    rng = np.random.default_rng(seed)
    if dtype.is_bool:
        return rng.integers(0, 2, COUNT).astype(np.bool_)
    if dtype.is_int:
        low, high = dtype.int_range
        special = [0, 1, high, low, high - 1, low + 1, 2, 3]
        rest = rng.integers(low, high, COUNT - len(special), endpoint=True, dtype=dtype.numpy)
        return np.concatenate([np.array(special, dtype.numpy), rest]).astype(dtype.numpy)
    special_floats = [0.0, -0.0, 1.0, -1.0, np.inf, -np.inf, np.nan, 6e-8, -3e-41, 65519.0, 65520.0, 1e38]
    rest = rng.standard_normal(COUNT - len(special_floats)) * 8
    with np.errstate(over="ignore"):
        made = np.concatenate([special_floats, rest]).astype(dtype.numpy)
    return made if seed % 2 == 0 else np.roll(made, 5)


def nonzero(dtype: DType) -> Array:
    made = numbers(dtype, 1)
    if dtype.is_int:
        made = made[::-1].copy()
        made[(made == 0) | (made == np.array(-1).astype(dtype.numpy))] = 7
    return made


def shifts(dtype: DType) -> Array:
    return (np.arange(COUNT) % dtype.bits).astype(dtype.numpy)


Case = tuple[str, Function, list[Array], Array]
ARITHMETIC: list[type[Binary]] = [Add, Sub, Mul, Min, Max, Lt, Le, Eq, Ne]
BITS: list[type[Binary]] = [BitAnd, BitOr, BitXor]
DIVISIONS: list[type[Binary]] = [FloorDiv, FloorMod, TruncDiv, TruncMod]


def case(cls: type[Any], dtype: DType, lanes: int, a: Array, b: Array, expected: Array) -> Case:
    out = bool_ if expected.dtype == np.bool_ else dtype
    name = f"{cls.__name__}_{dtype}"
    return name, elementwise(name, [dtype, dtype], out, lanes, COUNT, cls), [a, b], expected


def truncated(a: Array, b: Array) -> Array:
    """The quotients towards zero, by Python's integers: the smallest integer has no absolute value in its own type."""
    exact = [abs(int(x)) // abs(int(y)) * (1 if (x < 0) == (y < 0) else -1) for x, y in zip(a, b, strict=True)]
    return np.array(exact, a.dtype)


def binary_cases(lanes: int) -> Iterator[Case]:
    with np.errstate(all="ignore"):
        for t in INTS + FLOATS:
            a, b = numbers(t, 0), numbers(t, 1)
            for cls in ARITHMETIC + ([Div] if t.is_float else BITS):
                yield case(cls, t, lanes, a, b, np.asarray(cls.numpy(a, b)))
        for t in INTS:
            a, b, s = numbers(t, 0), nonzero(t), shifts(t)
            for cls in DIVISIONS:
                yield case(cls, t, lanes, a, b, truncated(a, b) if cls is TruncDiv else np.asarray(cls.numpy(a, b)))
            for cls in (ShiftLeft, ShiftRight):
                yield case(cls, t, lanes, a, s, np.asarray(cls.numpy(a, s)))
        a, b = numbers(bool_, 0), numbers(bool_, 1)
        for cls in (And, Or, Eq, Ne, BitXor):
            yield case(cls, bool_, lanes, a, b, np.asarray(cls.numpy(a, b)))


def run_cases(name: str, cases: list[Case]) -> None:
    machine = machine_for([c[1] for c in cases], TARGETS[name])
    wrong = []
    for title, _, inputs, expected in cases:
        got = np.zeros_like(expected)
        call(machine, title, *inputs, got)
        if not same(got, expected):
            wrong.append(title)
    assert wrong == []


@pytest.mark.sampled(5)
@EVERYWHERE
def test_binary_operators(name: str, lanes: int) -> None:
    run_cases(name, list(binary_cases(lanes)))


@pytest.mark.sampled(5)
@EVERYWHERE
def test_unary_operators_and_selection(name: str, lanes: int) -> None:
    cases: list[Case] = []
    for t in INTS + FLOATS:
        a, b = numbers(t, 0), numbers(t, 1)
        with np.errstate(over="ignore"):
            negative = (-a).astype(t.numpy)
        title = f"Neg_{t}"
        cases.append((title, elementwise(title, [t], t, lanes, COUNT, Neg), [a], negative))
        title, c = f"Select_{t}", numbers(bool_, 0)
        cases.append((title, elementwise(title, [bool_, t, t], t, lanes, COUNT, Select), [c, a, b], np.where(c, a, b)))
    for t in [*INTS, bool_]:
        title, a = f"Not_{t}", numbers(t, 0)
        cases.append((title, elementwise(title, [t], t, lanes, COUNT, Not), [a], np.invert(a)))
    run_cases(name, cases)


def castable(source: DType, to: DType) -> Array:
    """Values of *source* that NumPy converts to *to* without undefined behaviour."""
    a = numbers(source, 0)
    if source.is_float and to.is_int:
        low, high = to.int_range
        clipped = np.nan_to_num(np.asarray(a, np.float64), nan=3.7, posinf=100.5, neginf=-1.5 if low else 0.5)
        return np.clip(clipped, max(low, -(2**52)) * 0.99, min(high, 2**52) * 0.99).astype(source.numpy)
    return a


@pytest.mark.sampled(5)
@EVERYWHERE
def test_casts(name: str, lanes: int) -> None:
    cases: list[Case] = []
    kinds = [t for t in SCALARS.values() if t.kind != "handle" and not t.is_storage]
    for source in kinds:
        for to in kinds:
            title, a = f"cast_{source}_{to}", castable(source, to)
            with np.errstate(over="ignore"):
                expected = (a != 0) if to is bool_ else a.astype(to.numpy)
            function = elementwise(title, [source], to, lanes, COUNT, lambda x, to=to: cast(x, to))
            cases.append((title, function, [a], expected))
    run_cases(name, cases)


@pytest.mark.parametrize("name", TARGETS)
def test_doubles_are_rounded_once_to_half(name: str) -> None:
    halves = np.arange(1, 2000, dtype=np.float64) * 2.0**-10 + 1
    ties = np.concatenate([halves + 2.0**-11 * (1 + e) for e in (0.0, 1e-12, -1e-12)])
    a = np.concatenate(
        [ties, -ties, ties * 2.0**-16, [65519.999999999, 65520.0, 1e300, 2.0**-25, 2.0**-25 * (1 + 1e-12)]]
    )
    a = a[: len(a) // 16 * 16]
    for lanes in (1, 16):
        function = elementwise("f", [f64], f16, lanes, len(a), lambda x: cast(x, f16))
        got = np.zeros(len(a), np.float16)
        call(machine_for([function], TARGETS[name]), "f", a, got)
        with np.errstate(over="ignore"):
            assert same(got, a.astype(np.float16))


@pytest.mark.parametrize("name", TARGETS)
@pytest.mark.parametrize("half", [f16, bf16], ids=str)
def test_all_sixteen_bit_patterns_survive(name: str, half: DType) -> None:
    bits = np.arange(1 << 16).astype(np.uint16).view(half.numpy)
    wide = elementwise("wide", [half], f32, 16, len(bits), lambda x: cast(x, f32))
    back = elementwise("back", [f32], half, 16, len(bits), lambda x: cast(x, half))
    machine = machine_for([wide, back], TARGETS[name])
    floats, again = np.zeros(len(bits), np.float32), np.zeros_like(bits)
    call(machine, "wide", bits, floats)
    assert same(floats, bits.astype(np.float32))
    call(machine, "back", floats, again)
    assert same(again, bits)


@pytest.mark.parametrize("name", TARGETS)
def test_rounding_to_sixteen_bits(name: str) -> None:
    rng = np.random.default_rng(3)
    a = rng.integers(0, 1 << 32, 1 << 16, dtype=np.uint32).view(np.float32)
    for half in (f16, bf16):
        function = elementwise("f", [f32], half, 16, len(a), lambda x, half=half: cast(x, half))
        got = np.zeros(len(a), half.numpy)
        call(machine_for([function], TARGETS[name]), "f", a, got)
        with np.errstate(over="ignore", invalid="ignore"):
            assert same(got, a.astype(half.numpy))


OPS: dict[str, Callable[[Expr, Any], Expr]] = {"floordiv": operator.floordiv, "mod": operator.mod}


@pytest.mark.sampled(5)
@pytest.mark.parametrize("name", TARGETS)
@pytest.mark.parametrize("dtype", [i8, i32, i64, u8, u64], ids=str)
def test_division_by_constants(name: str, dtype: DType) -> None:
    a = numbers(dtype, 0)
    cases: list[Case] = []
    divisors = [1, 2, 3, 7, 8, 64, 100] + ([-3, -8] if dtype.kind == "int" else [])
    for lanes in (1, 4):
        for op, emit in OPS.items():
            for c in divisors:
                title = f"{op}_{c}_{lanes}"
                function = elementwise(title, [dtype], dtype, lanes, COUNT, lambda x, e=emit, c=c: e(x, c))
                reference = np.floor_divide if op == "floordiv" else np.mod
                divisor = np.array(c, dtype.numpy)
                cases.append((title, function, [a], reference(a, divisor)))
    run_cases(name, cases)


@pytest.mark.sampled(5)
@pytest.mark.parametrize("name", TARGETS)
@pytest.mark.parametrize("dtype", FLOATS, ids=str)
def test_extrema_with_a_constant_propagate_nan(name: str, dtype: DType) -> None:
    a = numbers(dtype, 0)
    cases: list[Case] = []
    for lanes in (1, 16):
        for cls in (Min, Max):
            for side in ("left", "right"):
                title = f"{cls.__name__}_{lanes}_{side}"
                expected = np.asarray(cls.numpy(a, np.array(6.0, dtype.numpy)))
                function = elementwise(title, [dtype], dtype, lanes, COUNT, partial(with_six, cls, dtype, side))
                cases.append((title, function, [a], expected))
    run_cases(name, cases)


def with_six(cls: type[Binary], dtype: DType, side: str, x: Expr) -> Expr:
    six = const(6.0, dtype)
    return binary(cls, x, six) if side == "left" else binary(cls, six, x)
