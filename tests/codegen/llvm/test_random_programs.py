"""Random integer programs compute the same in machine code as in the reference interpreter."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.codegen.llvm.harness import TARGETS, call, machine_for

from weft.codegen.interp import run
from weft.ir import Broadcast, Cast, Expr, Ramp, Select, Var, broadcast, const, eq, index, maximum, minimum, ne
from weft.loop import Buffer, Export, Function, If, Let, Load, LoopKind, Program, Stmt, Store, for_, seq
from weft.support.dtypes import DType, i32, i64

N, U, J, K = Var("n"), Var("u"), Var("j"), Var("k")
X = Buffer("x", [64], i64)
OUT = 4 * 6
CONSTANTS = st.integers(-9, 9)


def clamped(e: Expr) -> Expr:
    """An index inside of `X`."""
    return minimum(maximum(e, broadcast(index(0), e.dtype.lanes)), broadcast(index(63), e.dtype.lanes))


def guarded_division(a: Expr, b: Expr) -> Expr:
    zero = broadcast(index(0), b.dtype.lanes)
    return Select(ne(b, zero) & ne(b, broadcast(index(-1), b.dtype.lanes)), a // b, a)


def guarded_load(e: Expr) -> Expr:
    """The element at *e* if there is one, else *e*; as a load in one branch only."""
    inside = (broadcast(index(-1), e.dtype.lanes) < e) & (e < broadcast(index(64), e.dtype.lanes))
    return Select(inside, Load(X, (e,)), e)


def through_i32(e: Expr) -> Expr:
    small = e % 1000
    return Cast(Cast(small, i32.with_lanes(e.dtype.lanes)), e.dtype)


@st.composite
def conditions(draw: st.DrawFn, inner: st.SearchStrategy[Expr]) -> Expr:
    a, b = draw(inner), draw(inner)
    made = draw(st.sampled_from([a < b, a <= b, eq(a, b), ne(a, b)]))
    if draw(st.booleans()):
        other = draw(inner) < draw(inner)
        made = draw(st.sampled_from([made & other, made | other, ~made]))
    return made


def compound(inner: st.SearchStrategy[Expr]) -> st.SearchStrategy[Expr]:
    pairs = st.tuples(inner, inner)
    return st.one_of(
        pairs.map(lambda p: p[0] + p[1]),
        pairs.map(lambda p: p[0] - p[1]),
        st.tuples(inner, CONSTANTS).map(lambda p: p[0] * p[1]),
        pairs.map(lambda p: (p[0] % 100) * (p[1] % 100)),
        st.tuples(inner, st.sampled_from([1, 2, 3, 4, 6, 8, 16])).map(lambda p: p[0] // p[1]),
        st.tuples(inner, st.sampled_from([1, 2, 3, 4, 6, 8, 16])).map(lambda p: p[0] % p[1]),
        pairs.map(lambda p: minimum(p[0], p[1])),
        pairs.map(lambda p: maximum(p[0], p[1])),
        st.tuples(conditions(inner), inner, inner).map(lambda p: Select(*p)),
        pairs.map(lambda p: guarded_division(p[0], p[1])),
        inner.map(lambda e: Load(X, (clamped(e),))),
        inner.map(guarded_load),
        inner.map(through_i32),
    )


SCALARS = st.recursive(
    st.one_of(st.sampled_from([N, U, J, K, J * 4 + U]), CONSTANTS.map(index)), compound, max_leaves=10
)


def vectors(lanes: int) -> st.SearchStrategy[Expr]:
    wide: DType = i64.with_lanes(lanes)
    leaves = st.one_of(
        st.sampled_from([Broadcast(v, lanes) for v in (N, U, J, K)]),
        st.tuples(st.sampled_from([N, U, J, K]), CONSTANTS).map(lambda p: Ramp(p[0], index(p[1]), lanes)),
        CONSTANTS.map(lambda c: const(c, wide)),
        st.just(Ramp(J * 2, U, lanes)),
    )
    return st.recursive(leaves, compound, max_leaves=8)


def program(value: Expr, let: Expr, cond: Expr) -> Program:
    """out[i, u] = value, and x changes under way, so that a load must not be taken for an earlier one."""
    lanes = value.dtype.lanes
    out = Buffer("out", [OUT * lanes], i64)
    at = (J * 4 + U) * lanes
    write: Stmt = Store(out, (at if lanes == 1 else Ramp(at, index(1), lanes),), value, None)
    change = Store(X, (clamped(let),), index(7) + J, None)
    body = Let(K, let, seq(write, If(cond, change, None), write))
    nest = for_(J, 6, for_(U, 4, body, LoopKind.UNROLLED))
    return Program((Function("f", (X, out, N), nest, (Export(),)),))


def outside_of_let(e: st.SearchStrategy[Expr]) -> st.SearchStrategy[Expr]:
    """Expressions for where `k` is not bound yet."""
    return e.filter(lambda x: not mentions(x, K))


def mentions(root: Expr, var: Var) -> bool:
    stack: list[object] = [root]
    while stack:
        e = stack.pop()
        if e is var:
            return True
        stack += e.children() if isinstance(e, Expr) else []
    return False


def check(p: Program, name: str) -> None:
    machine = machine_for(p.functions, TARGETS[name])
    lanes = int(str(p.entry.params[1].shape[0].value)) // OUT  # type: ignore[union-attr]
    for n in (0, 5, -3, 40):
        start = np.arange(64, dtype=np.int64) * 3 - 60
        results = []
        for _ in range(2):
            results.append((start.copy(), np.zeros(OUT * lanes, np.int64)))
        call(machine, "f", *results[0], n)
        run(p, [*results[1], n])
        for got, want in zip(*results, strict=True):
            np.testing.assert_array_equal(got, want)


@pytest.mark.sampled(2)
@pytest.mark.parametrize("name", TARGETS)
@settings(max_examples=25, derandomize=True, deadline=None)
@given(value=SCALARS, let=outside_of_let(SCALARS), cond=conditions(SCALARS))
def test_scalar_programs(name: str, value: Expr, let: Expr, cond: Expr) -> None:
    check(program(value, let, cond), name)


@pytest.mark.sampled(2)
@pytest.mark.parametrize("name", TARGETS)
@settings(max_examples=15, derandomize=True, deadline=None)
@given(value=st.sampled_from([4, 8]).flatmap(vectors), let=outside_of_let(SCALARS), cond=conditions(SCALARS))
def test_vector_programs(name: str, value: Expr, let: Expr, cond: Expr) -> None:
    check(program(value, let, cond), name)
