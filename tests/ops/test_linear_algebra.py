"""Factorisations of matrices, compared with NumPy's."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import weft
from weft.driver.checking.reference import run_operator
from weft.graph import Graph
from weft.support.dtypes import f32
from weft.support.errors import ModelError

Array = np.ndarray[Any, Any]
SQUARE = np.random.default_rng(0).standard_normal((2, 4, 4))
TALL = np.random.default_rng(1).standard_normal((2, 5, 4))
DEFINITE = SQUARE @ SQUARE.swapaxes(1, 2) + np.eye(4)


def close(made: Array, wanted: Array) -> None:
    np.testing.assert_allclose(made, wanted, rtol=1e-10, atol=1e-10)


@pytest.mark.parametrize("x", [SQUARE, TALL, TALL.swapaxes(1, 2).copy()], ids=["square", "tall", "wide"])
def test_lu(x: Array) -> None:
    packed, exchanges = run_operator("lu", [x])
    (order,) = run_operator("exchanged_rows", [exchanges], rows=x.shape[1])
    k = min(x.shape[1:])
    for a, p, rows in zip(x, packed, order, strict=True):
        lower = np.tril(p, -1)[:, :k] + np.eye(len(a), k)
        close(lower @ np.triu(p)[:k], a[rows])
        assert np.abs(np.tril(p, -1)).max() <= 1  # the largest element of a column is its pivot


def test_a_column_without_a_pivot() -> None:
    packed, exchanges = run_operator("lu", [np.array([[0.0, 2.0], [0.0, 3.0]])])
    assert packed.tolist() == [[0.0, 2.0], [0.0, 3.0]]
    assert exchanges.tolist() == [0, 1]


def test_det() -> None:
    close(run_operator("det", [SQUARE])[0], np.linalg.det(SQUARE))


@pytest.mark.parametrize("n", [1, 2, 3, 7])
@pytest.mark.parametrize("op", ["lu", "det", "cholesky", "householder_qr", "jacobi_eigen", "ldl"])
def test_compiled_code_for_small_matrices(op: str, n: int) -> None:
    """Loops over the columns that are left, of which there may always be fewer than a vector has."""
    x = np.random.default_rng(n).standard_normal((2, n, n)).astype(np.float32)
    graph = Graph()
    for k, v in enumerate(graph.add_many(op, [graph.input("x", x.shape, f32)])):
        graph.output(v, f"y{k}")
    definite = x @ x.swapaxes(1, 2) + np.eye(n, dtype=np.float32)
    for made, wanted in zip(weft.compile(graph, threads=1).run([definite]), run_operator(op, [definite]), strict=True):
        np.testing.assert_allclose(made, wanted, rtol=1e-4, atol=1e-4)


def test_cholesky() -> None:
    lower, failed = run_operator("cholesky", [DEFINITE])
    close(lower, np.linalg.cholesky(DEFINITE))
    assert failed.tolist() == [0, 0]


def test_a_matrix_that_is_not_positive_definite() -> None:
    with np.errstate(invalid="ignore"):
        lower, failed = run_operator("cholesky", [np.diag([4.0, -1.0, 1.0])])
    assert failed == 2
    assert lower[0, 0] == 2
    assert np.isnan(lower[1, 1])


@pytest.mark.parametrize("upper", [True, False])
@pytest.mark.parametrize("unit", [True, False])
def test_solve_triangular(upper: bool, unit: bool) -> None:
    triangle = np.triu(SQUARE) if upper else np.tril(SQUARE)
    if unit:
        triangle[:, np.arange(4), np.arange(4)] = 1
    right = TALL[:, :4, :3]
    (x,) = run_operator("solve_triangular", [SQUARE, right.copy()], upper=upper, unit=unit)
    close(triangle @ x, right)


@pytest.mark.parametrize("x", [TALL, TALL.swapaxes(1, 2).copy()], ids=["tall", "wide"])
def test_householder(x: Array) -> None:
    packed, tau = run_operator("householder_qr", [x])
    one = np.broadcast_to(np.eye(x.shape[1]), (2, x.shape[1], x.shape[1])).copy()
    (q,) = run_operator("apply_reflectors", [packed, tau, one], transposed=False)
    (transposed,) = run_operator("apply_reflectors", [packed, tau, one], transposed=True)
    k = min(x.shape[1:])
    close(transposed, q.swapaxes(1, 2))
    close(q @ transposed, one)
    close(q @ np.triu(packed), x)
    close(np.triu(packed)[:, :k], np.linalg.qr(x)[1])  # with LAPACK's signs


def test_jacobi() -> None:
    values, vectors = run_operator("jacobi_eigen", [DEFINITE])
    close(np.sort(values), np.linalg.eigvalsh(DEFINITE))
    close(DEFINITE @ vectors, vectors * values[:, None])
    columns, turn = run_operator("jacobi_columns", [TALL])
    close(TALL @ turn, columns)
    close(np.sort(np.linalg.norm(columns, axis=1)), np.sort(np.linalg.svd(TALL)[1]))


@pytest.mark.parametrize("n", [0, 1, 2, 3, 7])
def test_compiled_schur(n: int) -> None:
    """The order of eigenvalues is one of roundings, so that compiled code is compared by its product."""
    x = np.random.default_rng(n).standard_normal((2, n, n)).astype(np.float32)
    graph = Graph()
    for k, v in enumerate(graph.add_many("real_schur", [graph.input("x", x.shape, f32)])):
        graph.output(v, f"y{k}")
    form, q = weft.compile(graph, threads=1).run([x])
    np.testing.assert_allclose(q @ form @ q.swapaxes(1, 2), x, atol=1e-5)
    assert not np.tril(form, -2).any()


@pytest.mark.parametrize("x", [SQUARE, DEFINITE, np.roll(np.eye(4), 1, 0)[None]], ids=["square", "definite", "cycle"])
def test_schur(x: Array) -> None:
    form, q = run_operator("real_schur", [x])
    close(q @ form @ q.swapaxes(1, 2), x)
    close(q @ q.swapaxes(1, 2), np.broadcast_to(np.eye(4), x.shape))
    assert not np.tril(form, -2).any()
    below = np.diagonal(form, -1, 1, 2)
    assert not (below[:, 1:] * below[:, :-1]).any()  # blocks are of two rows
    close(np.sort_complex(np.linalg.eigvals(form)), np.sort_complex(np.linalg.eigvals(x)))


def test_schur_of_nan_ends() -> None:
    form, _ = run_operator("real_schur", [np.where(np.eye(4) == 1, np.nan, SQUARE[0])])
    assert np.isnan(np.diag(form)).all()


def test_vectors_of_equal_eigenvalues_stay_finite() -> None:
    """Of a matrix that has one direction only, each division is by the least that counts: vectors are scaled on the way."""
    x = (np.eye(12) + np.eye(12, k=1)).astype(np.float32)
    made = run_operator("quasi_triangular_vectors", [x, np.ones(12, np.float32), np.zeros(12, np.float32)])
    assert np.isfinite(made).all()
    vectors = made[0] / np.linalg.norm(made[0], axis=0)
    np.testing.assert_allclose(x @ vectors, vectors, atol=1e-6)


INDEFINITE = np.array(
    [SQUARE[0] + SQUARE[0].T, [[0, 1, 0, 0], [1, 0, 0, 0], [0, 0, 1, 2], [0, 0, 2, 0]], np.diag([1.0, -2, 3, -4])]
)


def test_ldl() -> None:
    packed, exchanges, zero = run_operator("ldl", [INDEFINITE])
    assert zero.tolist() == [0, 0, 0]
    assert exchanges[1].tolist() == [-2, -2, -4, -4]
    assert exchanges[2].tolist() == [1, 2, 3, 4]
    right = np.random.default_rng(3).standard_normal((3, 4, 2))
    (x,) = run_operator("ldl_solve", [packed, exchanges, right])
    close(INDEFINITE @ x, right)


def test_ldl_tells_of_a_pivot_that_is_zero() -> None:
    assert run_operator("ldl", [np.diag([1.0, 0.0, 2.0])])[2] == 2


def test_what_is_no_square_matrix() -> None:
    with pytest.raises(ModelError) as told:
        run_operator("cholesky", [TALL])
    assert told.value.message == (
        "cholesky takes square matrices of floats, not (2, 5, 4) of f64; given constant: f64[2, 5, 4]"
    )


def test_systems_of_other_sizes() -> None:
    with pytest.raises(ModelError) as told:
        run_operator("solve_triangular", [SQUARE, TALL], upper=True, unit=False)
    assert told.value.message == (
        "solve_triangular takes matrices of as many rows, not (2, 4, 4) and (2, 5, 4); "
        "given constant: f64[2, 4, 4], constant_1: f64[2, 5, 4]"
    )
    with pytest.raises(ModelError) as told:
        run_operator("apply_reflectors", [SQUARE, SQUARE[:, 0].copy(), TALL], transposed=False)
    assert told.value.message == (
        "apply_reflectors takes matrices of as many rows, not (2, 4, 4) and (2, 5, 4); "
        "given constant: f64[2, 4, 4], constant_1: f64[2, 4], constant_2: f64[2, 5, 4]"
    )


@pytest.mark.parametrize("largest", [True, False])
def test_running_extreme(largest: bool) -> None:
    x = np.array([[1.0, 3.0, 3.0, 2.0, np.nan, 5.0, np.nan], [2.0, 1.0, 1.0, 4.0, 0.0, 0.0, 9.0]])
    values, places = run_operator("running_extreme", [x], axis=1, largest=largest)
    accumulate = np.maximum.accumulate if largest else np.minimum.accumulate
    np.testing.assert_array_equal(values, accumulate(x, axis=1))
    assert places.tolist()[1] == ([0, 0, 0, 3, 3, 3, 6] if largest else [0, 1, 2, 2, 4, 5, 5])
    assert places.tolist()[0] == ([0, 1, 2, 2, 4, 4, 6] if largest else [0, 0, 0, 0, 4, 4, 6])


def test_matmul_chosen() -> None:
    x, weight = SQUARE[0], np.random.default_rng(2).standard_normal((3, 4, 5))
    (made,) = run_operator("matmul_chosen", [x, weight, np.array([2, 0, 2, 7])])
    close(made, np.einsum("sk,skn->sn", x, weight[[2, 0, 2, 2]]))
    with pytest.raises(ModelError) as told:
        run_operator("matmul_chosen", [x, weight[:, 1:].copy(), np.array([2, 0, 2, 1])])
    assert told.value.message == (
        "matmul_chosen takes rows [S, K], matrices [E, K, N] and numbers [S], not (4, 4), (3, 3, 5), (4); "
        "given constant: f64[4, 4], constant_1: f64[3, 3, 5], constant_2: i64[4]"
    )
