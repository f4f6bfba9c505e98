"""Special functions: Bessel's, gamma's derivatives, orthogonal polynomials."""

from __future__ import annotations

import torch
from tests.frontends.torch.cases.tensors import A, Case, X, Y
from tests.frontends.torch.modules import numbers

S, P = torch.special, torch.ops.prims
WIDE, POSITIVE, DEGREES = 9 * X, 6 * X.abs() + 0.1, torch.tensor([0, 1, 5, 3])
KINDS = (
    *(f"{shift}chebyshev_polynomial_{k}" for shift in ("", "shifted_") for k in "tuvw"),
    *("hermite_polynomial_h", "hermite_polynomial_he", "laguerre_polynomial_l", "legendre_polynomial_p"),
)

CASES: dict[str, Case] = {
    "bessel": (
        lambda x, y: (
            *(
                f(x)
                for f in (
                    S.bessel_j0,
                    S.bessel_j1,
                    P.bessel_j0,
                    P.bessel_j1,
                    S.spherical_bessel_j0,
                    P.spherical_bessel_j0,
                )
            ),
            *(f(x) for f in (P.bessel_i0e, P.bessel_i1e)),
            *(f(x / 3) for f in (P.bessel_i0, P.bessel_i1, S.modified_bessel_i0, S.modified_bessel_i1)),
            *(f(y) for f in (S.bessel_y0, S.bessel_y1, S.modified_bessel_k0, S.modified_bessel_k1)),
            *(f(y) for f in (S.scaled_modified_bessel_k0, S.scaled_modified_bessel_k1)),
        ),
        [WIDE, POSITIVE],
    ),
    "gamma": (
        lambda x, y: (
            torch.digamma(x),
            P.digamma(y),
            torch.polygamma(0, y),
            torch.polygamma(2, y),
            S.zeta(y + 1, x.abs() + 0.5),
            P.zeta(y + 1, y),
            A.special_zeta.self_scalar(2.5, y),
            A.special_zeta.other_scalar(y + 1, 1.5),
        ),
        [WIDE / 2, POSITIVE],
    ),
    "incomplete gamma": (
        lambda a, x: (torch.igamma(a, x), torch.igammac(a, x), P.igamma(x, a), P.igammac(x, a)),
        [
            torch.tensor([0.0, 0, 1, torch.inf, torch.inf, 2, -1, 2, 1e-3, 0.7, 3, 40, 250]),
            torch.tensor([0.0, 1, 0, 1, torch.inf, torch.inf, 1, -2, 1e-5, 2.5, 1.5, 44, 240]),
        ],
    ),
    "normal distribution": (
        lambda x: (
            torch.erfinv(x),
            P.erf_inv(x),
            S.erfcx(3 * x),
            P.erfcx(x),
            A.special_ndtri((x + 1) / 2),
            P.ndtri((x + 1) / 2),
        ),
        [(X / 3).clamp(-0.99, 0.99)],
    ),
    "polynomials": (
        lambda x, n: tuple([getattr(S, kind)(x, n) for kind in KINDS]),
        [Y, DEGREES],
    ),
    "polynomials of numbers": (
        lambda x, n: tuple(
            [
                f(*v)
                for kind in KINDS
                for f, v in (
                    (getattr(A, f"special_{kind}").x_scalar, (0.5, n)),
                    (getattr(A, f"special_{kind}").n_scalar, (x, 3)),
                )
            ]
        ),
        [Y, DEGREES],
    ),
    "extremes so far": (lambda x: (torch.cummax(x, 0), torch.cummin(x, 1)), [X]),
    "the middle and the most frequent": (
        lambda x, n: (x.nanmedian(), x.nanmedian(1), torch.mode(n, 1), torch.mode(n, 0, keepdim=True)),
        [torch.where(X > 1, torch.nan, X), numbers(5, 6).round().long()],
    ),
    "counted and scattered": (
        lambda x, v, n, w: (
            torch.histc(x, 5, -1, 2),
            torch.histc(x, 4),
            torch.unique_consecutive(n, return_inverse=True, return_counts=True),
            x.index_reduce(0, n[:2], v, "mean"),
            x.index_reduce(0, n[:2], v, "amax", include_self=False),
            A.as_strided_scatter(x, v[:, :2], [2, 2], [4, 1], 1),
            torch.ops.prims.as_strided_scatter(x, v[:, :2], [2, 2], [4, 1], 1),
            torch.diagonal_scatter(x, v[0, :3]),
            A._trilinear(x, w, x, [1, 3], [0], [1, 2], [2, 3]),
        ),
        [X, numbers(2, 4, seed=2), torch.tensor([1, 1, 0, 2, 2, 2]), numbers(2, 4, 4, seed=3)],
    ),
}
