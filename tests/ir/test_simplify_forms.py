"""What expressions become: a table of forms, and random expressions of data types other than the index."""

from __future__ import annotations

from random import Random

import pytest
from hypothesis import strategies as st
from tests.ir.evaluate import Undefined, evaluate, same
from tests.support.sampling import tried

from weft.ir import (
    EMPTY,
    FALSE,
    INDEX,
    TRUE,
    Add,
    Apply,
    Binary,
    BitAnd,
    BitOr,
    Bounds,
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
    Ramp,
    Reinterpret,
    Select,
    Sub,
    TruncDiv,
    Var,
    all_of,
    apply,
    broadcast,
    cast,
    const,
    eq,
    index,
    maximum,
    minimum,
    ne,
    select,
    simplify,
)
from weft.loop import Buffer, Load
from weft.loop.nodes import load
from weft.support.dtypes import DType, bf16, bool_, f16, f32, i8, i32, u8, u16

N, M = Var("n"), Var("m")
I, J, K, X, Y = Var("i"), Var("j"), Var("k"), Var("x"), Var("y")  # noqa: E741
BOUNDS = Bounds().bind(N, 1, None).bind(M, 1, None).bind(I, 0, N - 1).bind(J, 0, M - 1).bind(K, 0, 3)
P, Q = Var("p", bool_), Var("q", bool_)
F, G = Var("f", f32), Var("g", f32)
A, B = Var("a", i32), Var("b", i32)
U = Var("u", u8)
H = Var("h", bf16)

FORMS: list[tuple[Expr, Expr]] = [
    # sums
    (Y + X, X + Y),
    (X + 3 + Y - 3, X + Y),
    (X * 2 - X, X),
    ((X + 1) * 4 - 4, X * 4),
    (X * Y - Y * X, index(0)),
    (Neg(X) + 5, Sub(index(5), X)),
    # digits
    ((X * 8 + 3) // 4, X * 2),
    ((X * 8 + 3) % 4, index(3)),
    ((X + 7) // 4, (X + 3) // 4 + 1),
    (X // 8 // 4, X // 32),
    (X % 16 // 4, X // 4 % 4),
    (X % 16 % 4, X % 4),
    (X // 4 * 4 + X % 4, X),
    (X // 4 % 2 * 4 + X % 4, X % 8),
    (X - X // 4 * 4, X % 4),
    ((X % 49 * 16 + Y) // 28 * 28 + (X * 16 + Y) % 28, X % 49 * 16 + Y),
    ((X + Y % (M * 4)) // M * (M * 3) + (X + Y) % M * 3, Y % (M * 4) * 3 + X * 3),
    (X // -3, Neg(X) // 3),
    ((X * 6 + 4) // 8, (X * 3 + 2) // 4),
    ((I * 4 + K) // 4, I),
    ((I * 4 + K) % 4, K),
    ((I * 16 + K) // 4, I * 4),
    ((I * M + J) // M, I),
    ((I * M + J) % M, J),
    ((I * M + J) // (N * M), index(0)),
    ((I * M * 4 + J * 4 + K) // 4 % M, J),
    (I * (M + 1) // (M + 1), I),
    # comparisons
    (I < N, TRUE),
    (N <= I, FALSE),
    (I * M + J < N * M, TRUE),
    (X + 1 <= Y, X < Y),
    (X * 4 < 7, X < 2),
    (eq(X * 2, 5), FALSE),
    (ne(X + 1, X), TRUE),
    (eq(Y + 1, X), eq(X, Y + 1)),
    (~(X < Y), Y <= X),
    # choices
    (minimum(X, X + 1), X),
    (maximum(K, 4), index(4)),
    (minimum(minimum(X, 5), 3), minimum(X, 3)),
    (maximum(minimum(X, Y), X), X),
    (minimum(index(3), X), minimum(X, 3)),
    (select(X < Y, X, Y), minimum(X, Y)),
    (select(I < N, X, Y), X),
    (Select(~P, X, Y), Select(P, Y, X)),
    (Select(P, Select(Q, X, Y), Y), Select(P & Q, X, Y)),
    (Select(P, TRUE, FALSE), P),
    # logic
    (P & TRUE, P),
    (P | ~P, TRUE),
    ((P & Q) & P, P & Q),
    (~~P, P),
    (all_of([X < 5, Y < 3, X < 8]), all_of([X < 5, Y < 3])),
    (all_of([X < 8, Y < 3, X < 5]), all_of([X < 5, Y < 3])),
    (P & (Q & P), P & Q),
    (P & (Q & (X < Y)), (P & Q) & (X < Y)),
    ((X < 5) & (X > 7), FALSE),
    ((X < 5) & (X > 3), (X < 5) & (X > 3)),
    ((X < 5) | (X < 8), X < 8),
    ((X < 5) | (X >= 4), TRUE),
    ((X < 5) | (P | ~(X < 6)), (X < 5) | P | (X > 5)),
    ((X < Y) & (Y < X), FALSE),
    ((X < Y) | (Y <= X), TRUE),
    # casts
    (cast(cast(U, i32), i8), cast(U, i8)),
    (cast(cast(U, u16), i32), cast(U, i32)),
    (cast(cast(H, f32), bf16), H),
    (cast(cast(F, bf16), f32), cast(cast(F, bf16), f32)),
    (cast(cast(A, u16), u8), cast(A, u8)),
    (cast(cast(U, f16), i32), cast(U, i32)),
    (cast(cast(K, i8), INDEX), K),
    (cast(cast(X, i8), INDEX), cast(cast(X, i8), INDEX)),
    # floats: to the bit
    (F * 1.0, F),
    (F + const(-0.0, f32), F),
    (F + 0.0, F + 0.0),
    (F - F, F - F),
    (F * 0.0, F * 0.0),
    ((F + 1.0) + 2.0, (F + 1.0) + 2.0),
    (Lt(F, F), FALSE),
    (Le(F, F), Le(F, F)),
    (~(F < G), ~(F < G)),
    (apply("sqrt", const(9.0, f32)), const(3.0, f32)),
    # digits of a sum, whose lowest has lost a part of it
    ((X * 4 + Y) // 12 * 12 + (X * 2 + Y // 2) % 6 * 2 + Y % 2, X * 4 + Y),
    ((X * 4 + Y) // 538 * 538 + (X * 4 + Y) // 2 % 269 * 2 + (X * 4 + Y) % 2, X * 4 + Y),
    ((X % 8 * 4 + Y) // 2 % 6 * 2 + (X * 4 + Y) % 2, (X % 8 * 4 + Y) % 12),
    # data keeps its order
    (B + A, B + A),
    (B + A + 0, B + A),
    ((A + 1) + 2, A + 3),
    # vectors
    (broadcast(X, 4) + broadcast(Y, 4), broadcast(X + Y, 4)),
    (broadcast(X, 4) + Ramp(Y, index(1), 4), Ramp(X + Y, index(1), 4)),
    (Ramp(X * 4, index(1), 4) // 4, broadcast(X, 4)),
    (Ramp(X * 4, index(1), 4) % 4, Ramp(index(0), index(1), 4)),
    (Ramp(X, index(8), 4) // 8, Ramp(X // 8, index(1), 4)),
    (Ramp(X * 4, index(1), 8) // 4, Ramp(X * 4, index(1), 8) // 4),
    (Ramp(K, index(1), 4) < 8, broadcast(TRUE, 4)),
    (Ramp(X, index(0), 4), broadcast(X, 4)),
]


@pytest.mark.parametrize("number", range(len(FORMS)))
def test_form(number: int) -> None:
    before, after = FORMS[number]
    assert simplify(before, BOUNDS) is after


def test_it_goes_through_nodes_of_other_layers() -> None:
    buffer = Buffer("data", [N, 4], f32)
    before = load(buffer, I + 0 * J, (X * 8 + K) % 4) * 1.0
    assert simplify(before, BOUNDS) is Load(buffer, (I, K))
    kept = load(buffer, I, K)
    assert simplify(kept, BOUNDS) is kept


def test_arithmetic_on_loaded_indices_keeps_its_order() -> None:
    table = Buffer("table", [N], INDEX)
    e = Add(Load(table, (J,)), Load(table, (I,)))
    assert simplify(e, BOUNDS) is e


def test_factors_that_do_not_fit_are_left_alone() -> None:
    big = index((1 << 62) + 1)
    e = Mul(Mul(X, big), big)
    assert simplify(e) is e


def test_division_by_zero_is_left_alone() -> None:
    e = FloorDiv(X, index(0))
    assert simplify(e) is e
    assert simplify(FloorMod(index(3), index(0))) is FloorMod(index(3), index(0))


def test_deep_expressions() -> None:
    total: Expr = X
    wide: Expr = F
    nested: Expr = X
    for n in range(6_000):
        total = total + Y if n % 2 else total + 1
        wide = wide + G
        nested = minimum(nested, Y + n % 3) if n % 2 else nested // 3
    assert simplify(total) is simplify(X + Y * 3_000 + 3_000)
    assert simplify(wide) is wide
    simplify(nested, Bounds())


def test_the_memo_is_kept_with_the_bounds() -> None:
    bounds = Bounds().bind(I, 0, 7)
    e = (I * 3 + 1) // 8
    assert simplify(e, bounds) is simplify(e, bounds)
    assert simplify(e, bounds.bind(I, 0, 2)) is index(0)
    assert simplify(e, EMPTY) is not index(0)


CONVERTED = [bool_, u8, i8, i32, f16, f32]
VARIABLES = {d: [Var(f"{d.name}_{n}", d) for n in range(2)] for d in CONVERTED}


def leaves(dtype: DType) -> st.SearchStrategy[Expr]:
    variables = st.sampled_from(VARIABLES[dtype])
    if dtype.is_bool:
        return st.one_of(variables, st.booleans().map(lambda b: const(b, bool_)))
    numbers = [0, 1, 2, 3, 100] if not dtype.is_float else [0.0, -0.0, 1.0, -1.5, float("inf"), float("nan")]
    return st.one_of(variables, st.sampled_from(numbers).map(lambda v: const(v, dtype)))


def pairs_of(dtype: DType, depth: int) -> st.SearchStrategy[tuple[Expr, Expr]]:
    return st.tuples(typed(dtype, depth), typed(dtype, depth))


def _applied(p: tuple[type[Binary], tuple[Expr, Expr]]) -> Expr:
    return p[0](*p[1])


def typed(dtype: DType, depth: int = 3) -> st.SearchStrategy[Expr]:
    """Returns random expressions of data of type *dtype*."""
    if depth == 0:
        return leaves(dtype)
    inner = pairs_of(dtype, depth - 1)
    grown = [
        leaves(dtype),
        st.tuples(typed(bool_, depth - 1), inner).map(lambda p: Select(p[0], *p[1])),
        st.sampled_from(CONVERTED).flatmap(lambda d: typed(d, depth - 1)).map(lambda e: cast(e, dtype)),
    ]
    if dtype.is_bool:
        compared = st.sampled_from([t for t in CONVERTED if t is not bool_]).flatmap(lambda t: pairs_of(t, depth - 1))
        grown += [
            inner.map(lambda p: p[0] & p[1]),
            inner.map(lambda p: p[0] | p[1]),
            inner.map(lambda p: Not(p[0])),
            inner.map(lambda p: Eq(*p)),
            st.tuples(st.sampled_from([Lt, Le, Eq, Ne]), compared).map(_applied),
        ]
    else:
        divisions = [Div] if dtype.is_float else [FloorDiv, FloorMod, TruncDiv, BitAnd, BitOr]
        grown.append(st.tuples(st.sampled_from([Add, Sub, Mul, Min, Max, *divisions]), inner).map(_applied))
        grown.append(inner.map(lambda p: Neg(p[0])))
    if dtype is f32:
        grown.append(inner.map(lambda p: Apply("abs", (p[0],))))
        grown.append(typed(i32, depth - 1).map(lambda e: Reinterpret(e, f32)))
    return st.one_of(grown)


def random_value(dtype: DType, random: Random) -> bool | int | float:
    if dtype.is_bool:
        return random.random() < 0.5
    if dtype.is_float:
        return random.choice([0.0, -0.0, 1.0, -2.5, 1000.0, float("inf"), float("-inf"), float("nan")])
    low, high = dtype.int_range
    return random.choice([0, 1, 2, 3, max(low, -1), max(low, -128), min(high, 127), min(high, 200)])


TYPED = st.sampled_from(CONVERTED).flatmap(typed)


@tried(63, 250, TYPED, st.integers(0, 1 << 30))
def test_data_keeps_its_value(e: Expr, seed: int) -> None:
    after = simplify(e, Bounds())
    assert after.dtype is e.dtype
    assert simplify(after, Bounds()) is after
    random = Random(seed)
    for _ in range(8):
        env = {v: random_value(d, random) for d in CONVERTED for v in VARIABLES[d]}
        try:
            expected = evaluate(e, env)
        except Undefined:
            continue
        assert same(expected, evaluate(after, env)), (e, after, env)
