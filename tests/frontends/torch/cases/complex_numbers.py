"""Complex numbers, which are pairs of real ones outside of a graph."""

from __future__ import annotations

from typing import Any

import torch
from tests.frontends.torch.cases.tensors import A, Case, X, Y
from tests.frontends.torch.modules import numbers

PAIRS, OTHERS = numbers(3, 4, 2), numbers(3, 4, 2, seed=1)


def arithmetic(x: torch.Tensor, y: torch.Tensor) -> Any:
    """Sums, products and quotients, of complex numbers and of those with real ones."""
    z, w, r = A.view_as_complex(x), A.view_as_complex(y), x[..., 0]
    made = (
        z + w,
        z - r,
        z * w,
        z * 2,
        A.mul.Scalar(z, 1 - 2j),
        z / w,
        z / 2.5,
        A.div.Scalar(z, 2j),
        r * z,
        A.reciprocal(w),
        z**3,
        w**-2,
        z**0,
        A.scalar_tensor(1.5, dtype=torch.complex64) * z,
    )
    return tuple([A.view_as_real(v) for v in made])


def with_numbers(x: torch.Tensor, y: torch.Tensor) -> Any:
    """Real numbers beside complex tensors have no imaginary part."""
    z, w, r = A.view_as_complex(x), A.view_as_complex(y), x[..., 0]
    made = (
        z + 1.5,
        z - 1,
        2 - z,
        z + 2j,
        z + True,
        A.where.ScalarOther(r > 0, z, 3.0),
        A.where.ScalarSelf(r > 0, 2j, z),
        A.masked_fill(z, r > 0, 3.0),
        A.add.Tensor(z, w, alpha=2),
    )
    return tuple([A.view_as_real(v) for v in made])


def products(x: torch.Tensor, y: torch.Tensor) -> Any:
    """Products of matrices."""
    z, w = torch.view_as_complex(x), torch.view_as_complex(y).t()
    made = (
        torch.mm(z, w),
        torch.bmm(z[None], w[None]),
        z.matmul(w),
        torch.addmm(z[0, :3], z, w),
        torch.baddbmm(z[None, :, :3], z[None], w[None]),
        torch.baddbmm(z[None, :, :3], z[None], w[None], beta=0.5, alpha=2 - 1j),
        torch.addmm(z[0, :3] / 0, z, w, beta=0),
        torch.nn.functional.linear(z, z, w[0]),
        torch.nn.functional.linear(z, z),
        torch.einsum("ik,kj->ij", z, w),
        torch.einsum("ik,kj,ij->i", z, w, z[:, :3]),
        torch.einsum("ik,ik->i", z, x[..., 0].to(z.dtype)),
    )
    return tuple([torch.view_as_real(v) for v in made])


def parts(x: torch.Tensor, y: torch.Tensor) -> Any:
    """What tells about complex numbers, and what makes them."""
    z, w = torch.view_as_complex(x), torch.view_as_complex(y)
    told = (
        A.abs(z),
        A.angle(z),
        A.real(z),
        A.imag(z),
        z == w,
        z != 1 + 1j,
        A.isnan(z),
        A.isfinite(z / torch.tensor([1.0, 0.0, 2.0, 3.0])),
        A.linalg_vector_norm(z, 2, [1]),
        A.linalg_vector_norm(z, 1),
        torch.ops.prims.convert_element_type(z, torch.complex128),
    )
    made = (
        A.conj_physical(z),
        A._conj_physical(z),
        A._conj(z),
        A.resolve_conj(z),
        A.resolve_neg(z),
        A.exp(z),
        A.ones_like(z),
        A.full_like(z, 2j),
    )
    return (*told[:-1], *[torch.view_as_real(A.resolve_conj(v)) for v in (*made, told[-1])])


def moved(x: torch.Tensor) -> Any:
    """Elements moved, and sums."""
    z = torch.view_as_complex(x)
    made = (
        z.reshape(2, 6),
        z.t(),
        z[1:],
        torch.cat([z, z]),
        z.sum(1),
        z.flip(0),
        A.constant_pad_nd(z, [1, 2]),
        -z,
        z.expand(2, 3, 4),
        z.roll(1, 0),
        z.diff(),
        *z.unbind(1),
        A.to.dtype_layout(z, dtype=torch.complex64),
        A.to.device(x, torch.device("cpu"), torch.complex64),
        A.to.other(x, z),
        z.type_as(z),
        z.narrow(1, 1, 2),
        A.view_as(z, z.t().clone()),
        z[:1].expand_as(z),
        A.fill(z, 2.0),
        A.fill(z, z[0, 0]),
        A.zero(z),
        torch.nn.functional.pad(z, (1, 2), "circular"),
        z.unfold(1, 2, 1),
        z.diagonal(1),
        *torch.meshgrid(z[0], z[:, 0], indexing="xy"),
        *A.broadcast_tensors([z, z[:1]]),
        A.select_scatter(z, z[0, :3], 1, 2),
        A.slice_scatter(z, z[:, :2], 1, 1, 3),
        A.diagonal_scatter(z, z[0, :3]),
    )
    return tuple([torch.view_as_real(v) for v in made])


def solved(x: torch.Tensor) -> Any:
    """Systems of equations, of a matrix, a vector, and from the left."""
    z = torch.view_as_complex(x)
    made = (
        A._linalg_solve_ex(z, z.mT[..., :2])[0],
        A._linalg_solve_ex(z, z[..., 0])[0],
        A._linalg_solve_ex(z, z.mT[:, :2], left=False)[0],
    )
    return (*[torch.view_as_real(v.resolve_conj()) for v in made], A._linalg_solve_ex(z, z)[3])


CASES: dict[str, Case] = {
    "complex arithmetic": (arithmetic, [PAIRS, OTHERS]),
    "complex numbers and real numbers": (with_numbers, [PAIRS, OTHERS]),
    "complex products": (products, [PAIRS, OTHERS]),
    "complex parts": (parts, [PAIRS, OTHERS]),
    "complex numbers moved": (moved, [PAIRS]),
    "complex systems": (solved, [numbers(2, 3, 3, 2)]),
    "complex numbers made": (
        lambda x, y: tuple(
            [torch.view_as_real(v) for v in (torch.complex(x, y), torch.polar(x, y), x.to(torch.complex64), x.chalf())]
        ),
        [X, Y],
    ),
    "transforms": (
        lambda x, y: (
            torch.view_as_real(A._fft_r2c(x, [1], 0, True)),
            torch.view_as_real(torch.fft.rfft2(x, norm="ortho")),
            torch.view_as_real(A._fft_r2c(x, [0, 1], 2, False)),
            torch.view_as_real(A._fft_c2c(torch.view_as_complex(y), [0, 1], 2, False)),
            A._fft_c2r(torch.view_as_complex(y), [0, 1], 2, 6),
        ),
        [X, PAIRS],
    ),
}
