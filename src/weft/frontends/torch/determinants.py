"""Determinants by the factors of their matrices, which PyTorch returns with them: their gradients are computed from those.

aten._linalg_det(a)   becomes   linalg_lu_factor_ex(a^T), and the product of the diagonal
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor


def determinant(matrix: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """Returns the determinants of matrices, the factors in one, and the rows exchanged."""
    factors, pivots = _factors(matrix)
    return _diagonal(factors).prod(-1) * _parity(pivots, matrix.dtype), factors, pivots


def log_determinant(matrix: Tensor) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """Returns the signs of the determinants, the logarithms of their sizes, the factors in one, and the rows exchanged."""
    factors, pivots = _factors(matrix)
    diagonal = _diagonal(factors)
    signs = diagonal.sign().prod(-1) * _parity(pivots, matrix.dtype)
    return signs, diagonal.abs().log().sum(-1), factors, pivots


def _factors(matrix: Tensor) -> tuple[Tensor, Tensor]:
    """Returns the factors of the transpose where *matrix* is in order in memory, as PyTorch does: its gradients look."""
    factors, pivots, _ = torch.ops.aten.linalg_lu_factor_ex(matrix.mT if matrix.is_contiguous() else matrix)
    return factors, pivots


def _diagonal(factors: Tensor) -> Tensor:
    return factors.contiguous().diagonal(0, -2, -1)


def _parity(pivots: Tensor, dtype: torch.dtype) -> Tensor:
    """Returns -1 for each odd number of exchanges [..., n], and 1 for each even one."""
    own = torch.arange(1, pivots.shape[-1] + 1, dtype=pivots.dtype, device=pivots.device)
    return torch.where(pivots == own, 1, -1).to(dtype).prod(-1)


def determinants() -> dict[Any, Callable[..., Any]]:
    """Returns the decompositions by their operators."""
    return {
        torch.ops.aten._linalg_det.default: determinant,
        torch.ops.aten._linalg_slogdet.default: log_determinant,
    }
