"""Factorisations of matrices, and what is solved by them. Vectors of either sign are compared by what is made of them."""

from __future__ import annotations

from typing import Any

import torch
from tests.frontends.torch.cases.tensors import A, Case, F
from tests.frontends.torch.modules import numbers

SQUARE, RIGHT, TALL = numbers(2, 4, 4), numbers(2, 4, 3, seed=1), numbers(2, 5, 3, seed=2)
DEFINITE = SQUARE @ SQUARE.mT + torch.eye(4)


def eigen(x: torch.Tensor) -> Any:
    """The eigenvalues, and the matrix made of them and of their vectors."""
    values, vectors = A._linalg_eigh(x, "U")
    return values, vectors @ (values[..., None] * vectors.mT), A._linalg_eigh(x)[0]


def singular(x: torch.Tensor, *, full: bool) -> Any:
    """The singular values, the matrix made of them and of the factors, and that these are orthogonal."""
    u, s, vh = A._linalg_svd(x, full)
    k = s.shape[-1]
    return s, u[..., :k] @ (s[..., None] * vh[..., :k, :]), u.mT @ u, vh @ vh.mT, A._linalg_svd(x, False, False)[1]


def general_eigen(x: torch.Tensor) -> Any:
    """The eigenvalues in order, and the differences of products with vectors, whose lengths are told, from their multiples."""
    values, vectors = torch.linalg.eig(x)
    real, imaginary = torch.view_as_real(values).unbind(-1)
    v, w = torch.view_as_real(vectors).unbind(-1)
    apart = x @ v - (v * real[:, None] - w * imaginary[:, None]), x @ w - (v * imaginary[:, None] + w * real[:, None])
    alone = torch.view_as_real(torch.linalg.eigvals(x)).unbind(-1)
    again = torch.view_as_real(A._linalg_eigvals(x)).unbind(-1)
    return (real.sort(-1)[0], imaginary.sort(-1)[0], v.square().sum(-2) + w.square().sum(-2), apart), [
        t.sort(-1)[0] for t in (*alone, *again)
    ]


CASES: dict[str, Case] = {
    "determinants": (
        lambda x: (A._linalg_det(x)[0], A._linalg_slogdet(x)[:2]),
        [SQUARE],
    ),
    "factors of elimination": (
        lambda x, y, b: (
            A.linalg_lu_factor_ex(x),
            A.linalg_lu(y),
            A.lu_unpack(*A.linalg_lu_factor_ex(x)[:2]),
            A.linalg_lu_solve(*A.linalg_lu_factor_ex(x)[:2], b),
            A.linalg_lu_solve(*A.linalg_lu_factor_ex(x)[:2], b, adjoint=True),
            A.linalg_lu_solve(*A.linalg_lu_factor_ex(x)[:2], b.mT, left=False),
        ),
        [SQUARE, TALL, RIGHT],
    ),
    "systems of equations": (
        lambda x, b: (
            A._linalg_solve_ex(x, b)[0],
            A._linalg_solve_ex(x, b[..., 0]),
            A._linalg_solve_ex(x, b.mT, left=False)[0],
            A.linalg_inv_ex(x),
            A.linalg_solve_triangular(x, b, upper=True),
            A.linalg_solve_triangular(x, b.mT, upper=False, left=False, unitriangular=True),
            A.triangular_solve(b, x, transpose=True),
        ),
        [SQUARE, RIGHT],
    ),
    "definite matrices": (
        lambda x, b: (
            A.linalg_cholesky_ex(x),
            A.cholesky(x, True),
            A.cholesky_solve(b, A.cholesky(x)),
            A.cholesky_inverse(A.cholesky(x, True), True),
        ),
        [DEFINITE, RIGHT],
    ),
    "reflections": (
        lambda x, b: (
            A.geqrf(x),
            A.linalg_qr(x, "complete"),
            A.linalg_qr(x.mT),
            A.linalg_householder_product(*A.geqrf(x)),
            A.ormqr(*A.geqrf(x), b),
            A.ormqr(*A.geqrf(x), b.mT, left=False, transpose=True),
        ),
        [TALL, numbers(2, 5, 2, seed=3)],
    ),
    "eigenvalues": (eigen, [DEFINITE]),
    "singular values": (lambda x: (singular(x, full=False), singular(x.mT, full=True)), [TALL]),
    "pseudoinverses": (
        lambda x, y: (torch.linalg.pinv(x), torch.linalg.pinv(y, hermitian=True), torch.linalg.pinv(x, rtol=0.5)),
        [TALL, DEFINITE],
    ),
    "eigenvalues that are complex": (general_eigen, [numbers(3, 5, 5, seed=4)]),
    "factors of indefinite matrices": (
        lambda x, b: (A.linalg_ldl_factor_ex(x), A.linalg_ldl_solve(*A.linalg_ldl_factor_ex(x[0])[:2], b)),
        [SQUARE + SQUARE.mT, RIGHT],
    ),
    "exponentials of matrices": (lambda x: A.linalg_matrix_exp(x * torch.tensor([0.1, 2.0])[:, None, None]), [SQUARE]),
    "distances": (
        lambda x: (F.pdist(x), F.pdist(x, 1), F.pdist(x, 0), F.pdist(x, 3), F.pdist(x, float("inf"))),
        [numbers(5, 3)],
    ),
}
