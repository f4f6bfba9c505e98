"""Expressions mean what NumPy says they mean: against an evaluator that knows nothing of the interpreter."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import assume
from hypothesis import strategies as st
from tests.ir.evaluate import Undefined, evaluate
from tests.strategies import FLOATS, INTS, SCALARS, exprs
from tests.support.sampling import tried

from weft import ir
from weft.codegen.interp import run
from weft.ir import INTRINSICS, Expr, Var, apply, const
from weft.loop import Buffer, Function, Param, Program, Store
from weft.support.dtypes import DType, f32, f64, i32, i64, u8

VARIABLES = [Var(f"{t}_{k}", t) for t in SCALARS for k in "ab"]
LANES = 8


def computed(e: Expr, values: dict[Var, Any]) -> Any:
    """The value of *e* as the interpreter computes it."""
    out = Buffer("out", (1,), e.dtype)
    params: tuple[Param, ...] = (out, *values)
    program = Program((Function("main", params, Store(out, (ir.ZERO,), e, None)),))
    result = np.zeros((1, *([e.dtype.lanes] if e.dtype.lanes > 1 else [])), e.dtype.numpy)
    run(program, [result, *values.values()])
    return result[0]


def environment(seed: int) -> dict[Var, Any]:
    rng = np.random.default_rng(seed)
    return {v: _value(v.dtype, rng) for v in VARIABLES}


def _value(t: DType, rng: np.random.Generator) -> Any:
    if t.is_float:
        return float(np.asarray(rng.choice([rng.normal(), 0.0, np.nan, np.inf, 2.5])).astype(t.numpy))
    if t.is_bool:
        return bool(rng.integers(2))
    low, high = t.int_range
    return [low, high, max(low, -3), 5, 0, *range(max(low, -50), 50, 11)][rng.integers(10)]


def assert_same(found: Any, expected: Any) -> None:
    """Equal bits, but for which nan it is."""
    assert np.array_equal(np.asarray(found), np.asarray(expected), equal_nan=np.asarray(expected).dtype.kind == "f")


@tried(75, 300, st.sampled_from(SCALARS).flatmap(lambda t: exprs(t, VARIABLES, depth=4)), st.integers(0, 99))
def test_scalar_expression(e: Expr, seed: int) -> None:
    values = environment(seed)
    try:
        expected = evaluate(e, {v: v.dtype.numpy.type(x) for v, x in values.items()})
    except Undefined:
        assume(False)
    found = computed(e, values)
    if e.dtype.is_float:
        found, expected = np.float64(found), np.float64(expected)
    assert_same(found, expected)


@tried(25, 100, st.sampled_from(SCALARS), st.data())
def test_vector_is_its_lanes(t: DType, data: st.DataObject) -> None:
    """An expression of a lane number, computed at once for all lanes and one by one."""
    x = Var("x")
    e = data.draw(exprs(t, [x, ir.cast(x, t)], depth=3))
    lanes = [computed(e, {x: k}) for k in range(LANES)]
    vector = computed(_spread(e, x), {})
    assert_same(vector.astype(np.float64), np.asarray(lanes).astype(np.float64))


def _spread(e: Expr, x: Var) -> Expr:
    """*e* with x = 0, 1, ... in the lanes."""
    if e is x:
        return ir.Ramp(ir.ZERO, ir.ONE, LANES)
    if isinstance(e, ir.Const):
        return ir.Broadcast(e, LANES)
    if isinstance(e, ir.Cast):
        return ir.Cast(_spread(e.a, x), e.dtype.with_lanes(LANES))
    return e.rebuild([_spread(k, x) for k in e.children()])  # type: ignore[arg-type, return-value]


@pytest.mark.parametrize("dtype", FLOATS, ids=str)
@pytest.mark.parametrize("fn", sorted(f for f, known in INTRINSICS.items() if known.accepts(f64)))
def test_intrinsic_keeps_its_type(fn: str, dtype: DType) -> None:
    known = INTRINSICS[fn]
    args = [const(v, dtype) for v in (0.5, 0.25, 0.75)[: known.arity]]
    with np.errstate(all="ignore"):
        expected = known.reference(*[dtype.numpy.type(a.value) for a in args])  # type: ignore[attr-defined]
        expected = np.asarray(expected).astype(bool if known.predicate else dtype.numpy)
    assert_same(np.float64(computed(apply(fn, *args), {})), np.float64(expected))
    lanes = computed(apply(fn, *[ir.Broadcast(a, 4) for a in args]), {})
    assert_same(lanes.astype(np.float64), np.full(4, expected, np.float64))


@pytest.mark.parametrize("dtype", INTS, ids=str)
def test_integers_wrap(dtype: DType) -> None:
    low, high = dtype.int_range
    top = Var("top", dtype)
    for e, expected in [(top + 1, low), (top * 2, -2 if low else high - 1), (ir.Neg(top) - 1, low if low else 0)]:
        assert int(computed(e, {top: high})) == expected


@pytest.mark.parametrize(
    ("value", "dtype", "expected"),
    [(-2.9, i32, -2), (2.9, u8, 2), (3e9, i32, -(1 << 31)), (float("nan"), i64, -(1 << 63))],
)
def test_float_to_integer_goes_towards_zero(value: float, dtype: DType, expected: int) -> None:
    x = Var("x", f64)
    assert int(computed(ir.Cast(x, dtype), {x: value})) == expected


def test_integer_to_float_rounds_once() -> None:
    x = Var("x", i64)
    value = (1 << 60) + (1 << 36) + 1  # just above the middle of two floats; as a double it is the middle
    assert computed(ir.Cast(x, f32), {x: value}) == np.int64(value).astype(np.float32) != np.float32(float(value))


def test_bits_are_read_as_another_type() -> None:
    x = Var("x", f32)
    assert int(computed(ir.Reinterpret(x, i32), {x: 1.0})) == 0x3F800000
    halves = ir.Reinterpret(ir.Broadcast(x, 2), u8.with_lanes(8))
    assert computed(halves, {x: 1.0}).tolist() == [0, 0, 128, 63] * 2


def test_a_shared_expression_is_computed_once() -> None:
    e: Expr = Var("x", f64)
    x = e
    for _ in range(60):  # 2 ** 60 nodes when written out
        e = (e + e) * 0.5
    assert isinstance(x, Var)
    assert computed(e, {x: 1.5}) == 1.5


def test_a_long_chain_of_selects() -> None:
    x = Var("x")
    e: Expr = ir.index(-1)
    for k in reversed(range(300)):
        e = ir.Select(ir.eq(x, k), ir.index(k * k), e)
    assert [int(computed(e, {x: k})) for k in (0, 150, 299, 300)] == [0, 22500, 89401, -1]
