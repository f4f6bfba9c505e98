"""Verdicts of the bijection analysis: known maps by name, and random ones against enumeration."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from random import Random
from typing import TypeAlias

import pytest
from hypothesis import strategies as st
from tests.ir.evaluate import evaluate
from tests.support.sampling import tried

from weft.ir import TRUE, Bounds, Expr, ExprLike, IterMap, Var, all_of, as_expr, ceil_div, detect_iter_map, index

N, M = Var("n"), Var("m")
A, B, C, D = Var("a"), Var("b"), Var("c"), Var("d")
SIZES = Bounds().bind(N, 1, None).bind(M, 1, None)


def analyse(
    bindings: Sequence[ExprLike],
    loops: dict[Var, ExprLike],
    extents: Sequence[ExprLike],
    predicate: Expr = TRUE,
) -> IterMap | None:
    sizes = {v: as_expr(e) for v, e in loops.items()}
    return detect_iter_map([as_expr(b) for b in bindings], sizes, predicate, [as_expr(e) for e in extents], SIZES)


def brute_force(
    bindings: Sequence[ExprLike],
    loops: dict[Var, ExprLike],
    extents: Sequence[ExprLike],
    predicate: Expr,
    sizes: dict[Var, int],
) -> tuple[bool, bool, bool]:
    """Enumerates the map at given sizes; returns whether it is bijective, surjective onto the axes, and injective."""

    def value(e: ExprLike, env: dict[Var, int]) -> int:
        return int(evaluate(as_expr(e), env))

    points = itertools.product(*[range(value(e, sizes)) for e in loops.values()])
    envs = [{**sizes, **dict(zip(loops, p, strict=True))} for p in points]
    hit = [tuple(value(b, env) for b in bindings) for env in envs if evaluate(predicate, env)]
    target = set(itertools.product(*[range(value(e, sizes)) for e in extents]))
    onto = set(hit) == target
    return onto and len(hit) == len(target), onto, len(hit) == len(set(hit))


Case: TypeAlias = tuple[Sequence[ExprLike], dict[Var, ExprLike], Sequence[ExprLike], Expr]

CEIL = ceil_div(N, 4)
BIJECTIVE: dict[str, Case] = {
    "identity": ([A, B], {A: 3, B: N}, [3, N], TRUE),
    "leading digit of a split": ([A // 3, (A * 4 + B) % 12], {A: 6, B: 4}, [2, 12], TRUE),
    "swapped": ([B, A], {A: 3, B: N}, [N, 3], TRUE),
    "fused": ([A * 5 + B], {A: 3, B: 5}, [15], TRUE),
    "fused symbolic": ([A * M + B], {A: N, B: M}, [N * M], TRUE),
    "split": ([A // 5, A % 5], {A: 15}, [3, 5], TRUE),
    "split symbolic": ([A // M, A % M], {A: N * M}, [N, M], TRUE),
    "three digits": ([A // 12, A // 4 % 3, A % 4], {A: 24}, [2, 3, 4], TRUE),
    "split and fused otherwise": ([A // 4, A % 4 * 3 + B], {A: 8, B: 3}, [2, 12], TRUE),
    "transposed fusion": ([(A * 4 + B) // 6, (A * 4 + B) % 6], {A: 3, B: 4}, [2, 6], TRUE),
    "digits above a digit of a sum": (
        [A // 3, (A % 3 * 4 + B) // 6, (A % 3 * 4 + B) % 6],
        {A: 15, B: 4},
        [5, 2, 6],
        TRUE,
    ),
    "digits above a digit of a bounded sum": (
        [A // 3, (A % 3 * 4 + B) // 5, (A % 3 * 4 + B) % 5],
        {A: 15, B: 4},
        [5, 2, 5],
        A % 3 * 4 + B < 10,
    ),
    "a remainder of a larger sum": ([A // 3, (A % 3 * 4 + B) // 6, (A * 4 + B) % 6], {A: 15, B: 4}, [5, 2, 6], TRUE),
    "with a unit loop": ([A + C], {A: 4, C: 1}, [4], TRUE),
    "reversed": ([3 - A], {A: 4}, [4], TRUE),
    "split that does not divide": ([A * 4 + B], {A: CEIL, B: 4}, [N], A * 4 + B < N),
    "constant split that does not divide": ([A * 4 + B], {A: 3, B: 4}, [10], A * 4 + B < 10),
    "two bounded sums": (
        [A * 4 + B, C * 4 + D],
        {A: CEIL, C: ceil_div(M, 4), B: 4, D: 4},
        [N, M],
        all_of([A * 4 + B < N, C * 4 + D < M]),
    ),
    "split twice, neither divides": (
        [(A * 3 + B) * 4 + C],
        {A: ceil_div(CEIL, 3), B: 3, C: 4},
        [N],
        all_of([A * 3 + B < CEIL, (A * 3 + B) * 4 + C < N]),
    ),
    "fused, then split with a remainder": (
        [(A * 8 + B) // M, (A * 8 + B) % M],
        {A: ceil_div(N * M, 8), B: 8},
        [N, M],
        A * 8 + B < N * M,
    ),
}


@pytest.mark.parametrize("name", BIJECTIVE)
def test_bijective(name: str) -> None:
    bindings, loops, extents, predicate = BIJECTIVE[name]
    found = analyse(bindings, loops, extents, predicate)
    assert found is not None
    assert (found.bijective, found.surjective, found.injective) == (True, True, True)
    for n, m in itertools.product((1, 3, 4, 7), (2, 5)):
        assert brute_force(bindings, loops, extents, predicate, {N: n, M: m})[0]


NOT_BIJECTIVE: dict[str, tuple[Case, bool]] = {
    "a loop unused": (([A], {A: 3, B: 4}, [3], TRUE), True),
    "a loop used twice": (([A, A], {A: 3}, [3, 3], TRUE), False),
    "a digit of a digit that does not go on in another": (
        ([A // 3, (A % 3 * 2 + B) // 3, (A % 4 * 2 + B) % 3], {A: 6, B: 2}, [2, 2, 3], TRUE),
        False,
    ),
    "a remainder of another sum": (
        ([A // 3, (A % 3 * 4 + B) // 6, (A * 4 + B) % 5], {A: 15, B: 4}, [5, 2, 5], TRUE),
        False,
    ),
    "overlapping": (([A * 2 + B], {A: 4, B: 3}, [9], TRUE), False),
    "shifted": (([A + 1], {A: 3}, [3], TRUE), False),
    "too short": (([A], {A: 3}, [4], TRUE), False),
    "a digit missing": (([A // 4], {A: 8}, [2], TRUE), True),
    "a low digit only": (([A % 4], {A: 8}, [4], TRUE), True),
    "rounded up without a predicate": (([A * 4 + B], {A: CEIL, B: 4}, [N], TRUE), False),
    "split with a remainder": (([A // 4, A % 4], {A: 10}, [3, 4], TRUE), False),
    "a digit of a digit that does not divide": (([A // 2, A % 3 % 2], {A: 4}, [2, 2], TRUE), False),
    "bounded the other way round": (([(2 - A) * 4 + B], {A: 3, B: 4}, [10], A * 4 + B < 10), False),
}


@pytest.mark.parametrize("name", NOT_BIJECTIVE)
def test_not_bijective(name: str) -> None:
    (bindings, loops, extents, predicate), onto = NOT_BIJECTIVE[name]
    found = analyse(bindings, loops, extents, predicate)
    assert found is not None
    assert not found.bijective
    assert found.surjective is onto


def test_verdicts_on_sums_that_share_a_loop_hold_by_enumeration() -> None:
    """`a // p` beside digits of `a % p * b + b'` and of another such sum, which may be as large, larger, or bounded."""
    random, proved = Random(3), 0
    for _ in range(200):
        n, m = random.choice([4, 6, 8, 12, 15]), random.choice([2, 3, 4, 6])
        part, other = random.choice([2, 3, 4, 5, 6]), random.choice([2, 3, 4, 6, 15])
        by = random.choice([2, 3, 4, 5, 6, 8])
        low = A % part * m + B
        bindings = [A // part, low // by, (A % other * m + B) % by]
        loops: dict[Var, ExprLike] = {A: n, B: m}
        extents = [-(-n // part), -(-part * m // by), by]
        predicate = random.choice([TRUE, low < by * 2])
        found = analyse(bindings, loops, extents, predicate)
        if found is not None:
            verdicts = (found.bijective, found.surjective, found.injective)
            truth = brute_force(bindings, loops, extents, predicate, {})
            assert all(t for v, t in zip(verdicts, truth, strict=True) if v), (bindings, loops, predicate)
            proved += found.injective
    assert proved > 20


@pytest.mark.parametrize("binding", [A * B, A * A, A // (B + 1), A * N - A * M])
def test_not_quasi_affine(binding: Expr) -> None:
    assert analyse([binding], {A: 3, B: 4}, [12]) is None


def test_a_predicate_that_is_no_bound_is_refused() -> None:
    assert analyse([A], {A: 4}, [4], A >= 1) is None


def test_loops_that_depend_on_loops_are_refused() -> None:
    assert analyse([A, B], {A: 4, B: A + 1}, [4, 4]) is None


@pytest.mark.parametrize(
    ("bindings", "loops", "injective"),
    [
        ([A * 8 + B], {A: 3, B: 5}, True),
        ([A // 4, A % 4], {A: 10}, True),
        ([A + 7], {A: 10}, True),
        ([A * 4 + B], {A: 3, B: 5}, False),
        ([A // 4], {A: 10}, False),
        ([A * M + B], {A: N, B: M}, True),
    ],
)
def test_injective(bindings: list[Expr], loops: dict[Var, ExprLike], injective: bool) -> None:
    found = analyse(bindings, loops, [100] * len(bindings))
    assert found is not None
    assert found.injective is injective
    assert not found.bijective


def test_an_axis_knows_its_loops() -> None:
    found = analyse([A * 4 + B, C], {A: 3, B: 4, C: 5}, [12, 5])
    assert found is not None
    assert [axis.loops for axis in found.axes] == [{A, B}, {C}]
    assert all(axis.is_full for axis in found.axes)


LOOPS = [A, B, C]
DIGITS = st.one_of(
    st.sampled_from(LOOPS),
    st.tuples(st.sampled_from(LOOPS), st.sampled_from([2, 3])).map(lambda p: p[0] // p[1]),
    st.tuples(st.sampled_from(LOOPS), st.sampled_from([2, 3])).map(lambda p: p[0] % p[1]),
    st.tuples(st.sampled_from(LOOPS), st.sampled_from([3, 5])).map(lambda p: p[1] - p[0]),
    st.tuples(st.sampled_from(LOOPS), st.sampled_from([2, 3, 4]), st.sampled_from([2, 3])).map(
        lambda p: p[0] % p[1] // p[2]
    ),
    st.tuples(st.sampled_from(LOOPS), st.sampled_from([2, 3, 4]), st.sampled_from([2, 3])).map(
        lambda p: p[0] // p[1] % p[2]
    ),
    st.tuples(st.sampled_from(LOOPS), st.sampled_from([3, 4, 5]), st.sampled_from([2, 3])).map(
        lambda p: p[0] % p[1] % p[2]
    ),
)
SUMS = st.one_of(
    DIGITS,
    st.tuples(DIGITS, st.sampled_from([1, 2, 3, 4, 6]), DIGITS).map(lambda p: p[0] * p[1] + p[2]),
    st.tuples(DIGITS, DIGITS, DIGITS).map(lambda p: p[0] * 6 + p[1] * 2 + p[2]),
)
BINDINGS = st.one_of(
    SUMS,
    st.tuples(SUMS, st.sampled_from([2, 3, 4, 6])).map(lambda p: p[0] // p[1]),
    st.tuples(SUMS, st.sampled_from([2, 3, 4, 6])).map(lambda p: p[0] % p[1]),
)
BOUNDS = st.tuples(SUMS, st.integers(1, 12)).map(lambda p: p[0] < index(p[1]))
PREDICATES = st.one_of(st.just(TRUE), BOUNDS, st.tuples(BOUNDS, BOUNDS).map(all_of))
MAPS = st.tuples(
    st.lists(BINDINGS, min_size=1, max_size=3), st.tuples(*[st.sampled_from([1, 2, 3, 4, 6])] * 3), PREDICATES
)


@tried(125, 500, MAPS)
def test_verdicts_hold_by_enumeration(case: tuple[list[Expr], tuple[int, ...], Expr]) -> None:
    bindings, sizes, predicate = case
    loops: dict[Var, ExprLike] = dict(zip(LOOPS, sizes, strict=True))
    points = [dict(zip(LOOPS, p, strict=True)) for p in itertools.product(*map(range, sizes))]
    values = [[int(evaluate(b, env)) for b in bindings] for env in points if evaluate(predicate, env)]
    extents = [max([v[k] for v in values], default=0) + 1 for k in range(len(bindings))]
    found = analyse(bindings, loops, extents, predicate)
    if found is not None:
        bijective, surjective, injective = brute_force(bindings, loops, extents, predicate, {})
        assert bijective or not found.bijective
        assert surjective or not found.surjective
        assert injective or not found.injective


STEPS = st.sampled_from([index(2), index(4), M, N])
SYMBOLIC = st.one_of(
    st.sampled_from(LOOPS),
    st.tuples(st.sampled_from(LOOPS), STEPS, st.sampled_from(LOOPS)).map(lambda p: p[0] * p[1] + p[2]),
    st.tuples(st.sampled_from(LOOPS), STEPS).map(lambda p: p[0] // p[1]),
    st.tuples(st.sampled_from(LOOPS), STEPS).map(lambda p: p[0] % p[1]),
)
SIZE = st.sampled_from([index(1), index(2), index(4), N, M, CEIL, N * M])
LIMITED = st.tuples(SYMBOLIC, st.sampled_from([N, M, CEIL])).map(lambda p: p[0] < p[1])
SYMBOLIC_MAPS = st.tuples(
    st.lists(SYMBOLIC, min_size=1, max_size=2),
    st.tuples(SIZE, SIZE, st.sampled_from([index(1), index(1), index(2), N])),
    st.one_of(st.just(TRUE), st.just(A * 4 + B < N), LIMITED),
    st.lists(st.sampled_from([index(2), index(4), N, M, N * M, N * 2, CEIL]), min_size=2, max_size=2),
)


@tried(125, 500, SYMBOLIC_MAPS)
def test_symbolic_verdicts_hold_at_every_size(case: tuple[list[Expr], tuple[Expr, ...], Expr, list[Expr]]) -> None:
    bindings, extents, predicate, axes = case
    loops: dict[Var, ExprLike] = dict(zip(LOOPS, extents, strict=True))
    found = analyse(bindings, loops, axes[: len(bindings)], predicate)
    if found is None or not (found.bijective or found.surjective or found.injective):
        return
    for n, m in itertools.product((1, 2, 3, 5, 8), (1, 2, 4, 6)):
        bijective, surjective, injective = brute_force(bindings, loops, axes[: len(bindings)], predicate, {N: n, M: m})
        assert bijective or not found.bijective
        assert surjective or not found.surjective
        assert injective or not found.injective
