"""Proofs that each element of a formula can be computed: of sizes that may be zero, written as one less than a size."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from weft.graph.fusion.reads_inside import is_total
from weft.ir import ONE, ZERO, Expr, Var, cast, select
from weft.support.dtypes import i64
from weft.te import Tensor, compute, max_, placeholder, prefix, reduce_axis, sum_

N, M = Var("n"), Var("m")
ZEROS = N - ONE, M - ONE
"""Two extents that may be zero."""


def of_two(fn: Callable[[Tensor, Tensor], Tensor]) -> bool:
    """Tells whether all elements of a formula of two matrices of such numbers of rows can be computed."""
    a, b = [placeholder((rows, 4), name=name) for rows, name in zip(ZEROS, "ab", strict=True)]
    return is_total(fn(a, b).op, [N, M])


def joined(a: Tensor, b: Tensor) -> Callable[[Expr, Expr], Expr]:
    return lambda i, j: select(i < a.shape[0], a[i, j], b[i - a.shape[0], j])


def reduced(a: Tensor, by: Callable[..., object]) -> Tensor:
    k = reduce_axis(a.shape[0], "k")
    return compute((4,), lambda j: by(a[k, j], [k]), "r")


TOTAL: dict[str, Callable[[Tensor, Tensor], Tensor]] = {
    "the same element": lambda a, b: compute(a.shape, lambda i, j: a[i, j], "y"),
    "concatenated": lambda a, b: compute((a.shape[0] + b.shape[0], 4), joined(a, b), "y"),
    "reversed": lambda a, b: compute(a.shape, lambda i, j: a[a.shape[0] - ONE - i, j], "y"),
    "padded": lambda a, b: compute((8, 4), lambda i, j: select(i < a.shape[0], a[i, j], 0.0), "y"),
    "the first, if there is one": lambda a, b: compute((4,), lambda j: select(a.shape[0] > ZERO, a[0, j], 0.0), "y"),
    "repeated": lambda a, b: compute((a.shape[0], 8), lambda i, j: a[i % a.shape[0], j % 4], "y"),
    "a sum": lambda a, b: reduced(a, sum_),
    "a maximum": lambda a, b: reduced(a, max_),
}
PARTIAL: dict[str, Callable[[Tensor, Tensor], Tensor]] = {
    "the first": lambda a, b: compute((4,), lambda j: a[0, j], "y"),
    "clamped": lambda a, b: compute((8, 4), lambda i, j: select(i < ONE, a[0, j], 0.0), "y"),
    "of the other's rows": lambda a, b: compute(a.shape, lambda i, j: b[i, j], "y"),
    "concatenated the other way round": lambda a, b: compute((a.shape[0] + b.shape[0], 4), joined(b, b), "y"),
    "divided by a size": lambda a, b: compute((4,), lambda j: cast(j // a.shape[0], i64), "y"),
}


@pytest.mark.parametrize("name", TOTAL)
def test_total(name: str) -> None:
    assert of_two(TOTAL[name])


@pytest.mark.parametrize("name", PARTIAL)
def test_not_total(name: str) -> None:
    assert not of_two(PARTIAL[name])


def test_prefixes() -> None:
    assert of_two(lambda a, b: prefix(a, sum_, 0))


def test_a_long_formula() -> None:
    """Longer than Python's stack is deep."""
    x = placeholder((ZEROS[0],), name="x")

    def fn(i: Expr) -> Expr:
        made = x[i]
        for n in range(1200):
            made = made + float(n)
        return made

    assert is_total(compute((ZEROS[0],), fn, "y").op, [N])
