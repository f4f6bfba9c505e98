from __future__ import annotations

from random import Random

import pytest
from tests.ir.evaluate import Undefined, evaluate

from weft.ir import (
    EMPTY,
    Add,
    Apply,
    Binary,
    BitAnd,
    BitOr,
    BitXor,
    Bounds,
    Broadcast,
    Cast,
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
    Ramp,
    Select,
    ShiftLeft,
    ShiftRight,
    Sub,
    TruncDiv,
    TruncMod,
    Var,
    index,
    minimum,
)
from weft.ir.bounds.bounds import Interval
from weft.support.dtypes import DType, bool_, f32, i8, i64, u8

BINARY = [Add, Sub, Mul, FloorDiv, FloorMod, TruncDiv, TruncMod, Min, Max, Lt, Le, Eq, Ne, BitAnd, BitOr, BitXor]


def small_range(random: Random, dtype: DType, low: int = -7, high: int = 7) -> tuple[int, int]:
    low = max(low, dtype.int_range[0])
    a, b = random.randint(low, high), random.randint(low, high)
    return min(a, b), max(a, b)


def values(e: Expr, ranges: dict[Var, tuple[int, int]]) -> list[int]:
    """All the values that *e* takes in the box of *ranges*."""
    envs: list[dict[Var, int]] = [{}]
    for v, (lo, hi) in ranges.items():
        envs = [{**env, v: x} for env in envs for x in range(lo, hi + 1)]
    found = []
    for env in envs:
        try:
            value = evaluate(e, env)
        except Undefined:
            continue
        found += [int(x) for x in value] if e.dtype.lanes > 1 else [int(value)]
    return found


def check(e: Expr, ranges: dict[Var, tuple[int, int]]) -> Interval:
    bounds = Bounds()
    for v, (lo, hi) in ranges.items():
        bounds = bounds.bind(v, lo, hi)
    interval = bounds.of(e)
    assert all(interval.holds(x) for x in values(e, ranges)), (e, ranges, interval)
    return interval


@pytest.mark.parametrize("dtype", [i64, i8, u8], ids=str)
@pytest.mark.parametrize("operator", BINARY)
def test_an_operator_of_two_intervals(operator: type[Binary], dtype: DType) -> None:
    random = Random(operator.__name__)
    a, b = Var("a", dtype), Var("b", dtype)
    for _ in range(25):
        check(operator(a, b), {a: small_range(random, dtype), b: small_range(random, dtype)})


@pytest.mark.parametrize("operator", [Add, Sub, Mul, Min, Max, FloorDiv, FloorMod])
def test_ends_are_reached(operator: type[Binary]) -> None:
    a, b = Var("a"), Var("b")
    ranges = {a: (2, 9), b: (3, 3)}
    interval = check(operator(a, b), ranges)
    found = values(operator(a, b), ranges)
    assert (min(found), max(found)) == interval


@pytest.mark.parametrize("dtype", [i8, u8], ids=str)
@pytest.mark.parametrize("operator", [Add, Sub, Mul, Neg])
def test_results_that_may_wrap(operator: type[Expr], dtype: DType) -> None:
    a = Var("a", dtype)
    low, high = dtype.int_range
    e = Neg(a) if operator is Neg else operator(a, a)  # type: ignore[call-arg]
    check(e, {a: (low, low + 3)})
    check(e, {a: (high - 3, high)})


@pytest.mark.parametrize("shift", [ShiftLeft, ShiftRight])
def test_shifts(shift: type[Binary]) -> None:
    random = Random(0)
    a, b = Var("a"), Var("b")
    for _ in range(30):
        check(shift(a, b), {a: small_range(random, i64, -40, 40), b: small_range(random, i64, 0, 5)})


def test_other_nodes() -> None:
    a, b = Var("a"), Var("b")
    c = Var("c", bool_)
    ranges = {a: (-5, 6), b: (-2, 3)}
    for e in (
        Not(a),
        Neg(a),
        Apply("abs", (a,)),
        Select(a < b, a, b),
        Cast(a, u8),
        Cast(a < b, i64),
        Cast(a, bool_),
        Ramp(a, b, 4),
        Ramp(a, index(-3), 4),
        Broadcast(a, 2),
        (a < b) & (b < 2),
        (a < b) | ~(b < 2),
    ):
        check(e, ranges)
    assert check(c, {c: (0, 1)}) == (0, 1)
    assert Bounds().of(Cast(Var("f", f32), u8)) == (0, 255)


UNBOUNDED = [(None, None), (None, 5), (-5, None), (3, None), (None, -3)]


@pytest.mark.parametrize("b", [*UNBOUNDED, (2, 4), (-4, -2), (-3, 3)])
@pytest.mark.parametrize("a", UNBOUNDED)
@pytest.mark.parametrize("operator", BINARY)
def test_open_ends(operator: type[Binary], a: tuple[int | None, int | None], b: tuple[int | None, int | None]) -> None:
    x, y = Var("x"), Var("y")
    interval = Bounds().bind(x, *a).bind(y, *b).of(operator(x, y))
    far = 1000
    box = {x: (a[0] or 0, a[1] or 0), y: (b[0] or 0, b[1] or 0)}
    for v, (lo, hi) in {x: a, y: b}.items():
        box[v] = (lo if lo is not None else (hi or 0) - far, hi if hi is not None else (lo or 0) + far)
    random = Random(f"{operator.__name__}{a}{b}")
    for _ in range(60):
        env = {v: random.choice([lo, hi, random.randint(lo, hi)]) for v, (lo, hi) in box.items()}
        try:
            assert interval.holds(int(evaluate(operator(x, y), env)))
        except Undefined:
            continue


def test_ends_that_are_expressions() -> None:
    n, i, j = Var("n"), Var("i"), Var("j")
    bounds = Bounds().bind(n, 1, None).bind(i, 0, n - 1).bind(j, 0, minimum(index(4), n - i) - 1)
    assert bounds.of(i) == (0, None)
    assert bounds.of(j) == (0, 3)
    assert bounds.bind(n, 1, 10).of(i) == (0, 9)


def test_binding_makes_a_new_environment() -> None:
    i = Var("i")
    outer = Bounds()
    inner = outer.bind(i, 0, 3)
    assert outer.of(i) == (None, None)
    assert inner.of(i) == (0, 3)
    assert inner.bind(i, 5, 7).of(i + 1) == (6, 8)


def test_the_same_binding_gives_the_same_environment() -> None:
    """It remembers what was asked; only what every one begins with, which lives for ever, keeps none of them alive."""
    i, outer = Var("i"), Bounds()
    assert outer.bind(i, 0, 3) is outer.bind(i, 0, 3)
    assert outer.bind(i, 0, 3) is not outer.bind(i, 0, 4)
    EMPTY.bind(i, 0, 3)
    assert "bind" not in EMPTY.memo


def test_an_unbound_variable_has_the_range_of_its_type() -> None:
    assert Bounds().of(Var("b", u8)) == (0, 255)
    assert Bounds().of(Var("f", f32)) == (None, None)
