"""Random integer expressions over loop variables with symbolic ranges, and environments that respect them."""

from __future__ import annotations

from random import Random

from hypothesis import strategies as st

from weft.ir import Bounds, Eq, Expr, FloorDiv, FloorMod, Le, Lt, Ne, Select, Var, all_of, index, maximum, minimum
from weft.ir.expr.binary import Comparison

N, M = Var("n"), Var("m")
I, J, K, T, X, Y = Var("i"), Var("j"), Var("k"), Var("t"), Var("x"), Var("y")  # noqa: E741
EXTENT = 6
"""Of k."""

BOUNDS = (
    Bounds()
    .bind(N, 1, None)
    .bind(M, 1, None)
    .bind(I, 0, N - 1)
    .bind(J, 0, M - 1)
    .bind(K, 0, EXTENT - 1)
    .bind(T, 0, minimum(index(4), N * 4 - I * 4) - 1)
    .bind(X, -9, 30)
)


def environment(random: Random) -> dict[Var, int]:
    """Returns values of all variables within `BOUNDS`; y, of which nothing is known, may be anything small."""
    n, m = random.randint(1, 7), random.randint(1, 7)
    i = random.randrange(n)
    return {
        N: n,
        M: m,
        I: i,
        J: random.randrange(m),
        K: random.randrange(EXTENT),
        T: random.randrange(min(4, n * 4 - i * 4)),
        X: random.randint(-9, 30),
        Y: random.randint(-40, 40),
    }


LEAVES = st.one_of(
    st.sampled_from([N, M, I, J, K, T, X, Y]),
    st.integers(-9, 20).map(index),
    st.sampled_from([1, 2, 3, 4, 8]).map(index),
)
DIVISORS = st.one_of(
    st.sampled_from([1, 2, 3, 4, 6, 8, 12, -3]).map(index), st.sampled_from([N, M, N * 4, N * M, N + 1])
)


def _grow(inner: st.SearchStrategy[Expr]) -> st.SearchStrategy[Expr]:
    pairs = st.tuples(inner, inner)
    return st.one_of(
        pairs.map(lambda p: p[0] + p[1]),
        pairs.map(lambda p: p[0] - p[1]),
        pairs.map(lambda p: p[0] * p[1]),
        st.tuples(inner, st.sampled_from([2, 3, 4, 8, 12])).map(lambda p: p[0] * p[1]),
        st.tuples(inner, DIVISORS).map(lambda p: FloorDiv(*p)),
        st.tuples(inner, DIVISORS).map(lambda p: FloorMod(*p)),
        pairs.map(lambda p: minimum(*p)),
        pairs.map(lambda p: maximum(*p)),
        st.tuples(conditions(inner), inner, inner).map(lambda p: Select(*p)),
    )


COMPARISONS: st.SearchStrategy[type[Comparison]] = st.sampled_from([Lt, Le, Eq, Ne])


def conditions(inner: st.SearchStrategy[Expr]) -> st.SearchStrategy[Expr]:
    """Returns conditions that compare expressions drawn from *inner*."""
    simple = st.tuples(COMPARISONS, inner, inner).map(lambda p: p[0](p[1], p[2]))
    return st.one_of(
        simple,
        st.lists(simple, min_size=1, max_size=3).map(all_of),
        st.tuples(simple, simple).map(lambda p: p[0] | p[1]),
        simple.map(lambda c: ~c),
    )


INDICES = st.recursive(LEAVES, _grow, max_leaves=8)
FACTORS: st.SearchStrategy[Expr] = st.one_of(
    st.sampled_from([1, 2, 3, 4, -1, -4]).map(index), st.sampled_from([N, M, N * 4])
)
TERMS = st.tuples(st.sampled_from([N, M, I, J, K, T, X]), FACTORS).map(lambda t: t[0] * t[1])
SUMS = st.lists(TERMS, min_size=1, max_size=4).map(lambda terms: sum(terms[1:], terms[0]))
CONDITIONS = conditions(st.one_of(INDICES, SUMS))
