"""Points at which an inequality fails: they are in the ranges, and tell only what is so."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from weft.ir import INDEX, Bounds, Expr, Var, index, minimum, select, simplify
from weft.ir.bounds.polynomial import Poly, poly_of
from weft.ir.simplifier import simplify as module
from weft.ir.simplifier.counterexamples import is_refuted

N, M, K, J = (Var(name, INDEX) for name in "nmkj")
BOUNDS = Bounds().bind(N, 1, None).bind(M, 1, 50).bind(K, 0, N - 1).bind(J, K, N + M)


def poly(e: Expr) -> Poly:
    return poly_of(simplify(e, BOUNDS))


@pytest.mark.parametrize(
    ("expression", "least"),
    [
        (N - 2, 0),
        (K - J, 0),
        (N - M, 0),
        (K // 4 * 4 - K, 0),
        (minimum(K, M) - M, 0),
        (select(K < M, K, M) - N, 0),
        (J % 7 - 6, 0),
    ],
)
def test_what_fails_somewhere_is_refuted(expression: Expr, least: int) -> None:
    assert is_refuted(poly(expression), least, BOUNDS)


@pytest.mark.parametrize(
    ("expression", "least"), [(J - K, 0), (N - K, 1), (K - K // 4 * 4, 0), (M - minimum(K, M), 0), (-M, -50)]
)
def test_what_holds_everywhere_is_not(expression: Expr, least: int) -> None:
    assert not is_refuted(poly(expression), least, BOUNDS)


def test_where_some_range_is_empty_nothing_is_refuted() -> None:
    empty = Bounds().bind(N, 1, 10).bind(K, N, N - 1)
    assert not is_refuted(poly_of(K - 20), 0, empty)


def test_variables_without_a_range_have_no_value() -> None:
    unbound = Var("u", INDEX)
    assert not is_refuted(poly_of(unbound + N), 10_000, BOUNDS)


@given(st.lists(st.integers(-3, 3), min_size=5, max_size=5), st.integers(1, 9))
def test_searches_find_the_same_with_and_without_points(factors: list[int], divisor: int) -> None:
    terms = [N, M, K, J // divisor, J % divisor]
    p = poly(sum((k * t for k, t in zip(factors, terms, strict=True)), start=N - N))
    answers = []
    for refuted in (is_refuted, lambda *_: False):
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr("weft.ir.simplifier.elimination.is_refuted", refuted)
            fresh = Bounds().bind(N, 1, None).bind(M, 1, 50).bind(K, 0, N - 1).bind(J, K, N + M)
            answers.append([module.Simplifier(fresh).is_at_least(p, least) for least in (-9, 0, 1)])
    assert answers[0] == answers[1]


def test_a_divisor_is_positive_where_a_loop_up_to_it_runs() -> None:
    """Rows may be none for the smallest pictures: inside of a loop over them there is one."""
    rows, columns = (M + 30) // 32, (N + 30) // 32
    outside = Bounds().bind(N, 1, None).bind(M, 1, None)
    inside = outside.bind(K, 0, rows - 1).bind(J, 0, columns - 1)
    assert simplify(K // rows, outside.bind(K, 0, M)) is not simplify(K // rows, inside)
    assert simplify(K % rows, inside) is K
    for zero in (K // rows, (K * columns + J) // (rows * columns)):
        assert simplify(zero, inside) is index(0)
    assert simplify((K * columns + J) // columns, inside) is K
