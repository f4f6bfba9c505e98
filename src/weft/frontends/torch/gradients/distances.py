"""Gradients of distances between rows, and of weights that are given by their lengths and directions."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor


def distances_backward(grad: Tensor, x1: Tensor, x2: Tensor, p: float, cdist: Tensor) -> Tensor:
    """Returns the gradient by *x1* [..., n, size] of the p-norms [..., n, m] of its rows' differences from those of *x2*."""
    apart = x1[..., :, None, :] - x2[..., None, :, :]
    return (grad[..., None] * _slope(apart, cdist[..., None], p)).sum(-2)


def pairs_backward(grad: Tensor, self: Tensor, p: float, pdist: Tensor) -> Tensor:
    """Returns the gradient by *self* [n, size] of the p-norms of the difference of each row and each behind it."""
    n = self.shape[0]
    first, second = torch.triu_indices(n, n, 1, device=self.device).unbind(0)
    of_pairs = grad[:, None] * _slope(self[first] - self[second], pdist[:, None], p)
    return torch.zeros_like(self).index_add(0, first, of_pairs).index_add(0, second, -of_pairs)


def _slope(apart: Tensor, length: Tensor, p: float) -> Tensor:
    """Returns the derivatives of *length*, the p-norm of the last dimension of *apart*; those of a length of zero are zero."""
    if p == 0:
        return torch.zeros_like(apart)
    if p == 1:
        return apart.sign()
    if math.isinf(p):
        return torch.where(apart.abs() == length, apart.sign(), 0)
    powers = apart if p == 2 else apart.sign() * apart.abs() ** (p - 1)
    below = torch.where(length == 0, 1, length) ** (p - 1)
    is_steep = (length == 0) | (apart == 0) if p < 1 else length == 0
    return torch.where(is_steep, 0, powers / below)


def weight_norm_backward(
    grad_w: Tensor, saved_v: Tensor, saved_g: Tensor, saved_norms: Tensor, dim: int
) -> tuple[Tensor, Tensor]:
    """Returns the gradients by *v* and by *g* of g v / |v|, whose norms are of all dimensions but *dim*."""
    others = [d for d in range(saved_v.dim()) if d != dim % saved_v.dim()]
    along = (grad_w * saved_v).sum(others, keepdim=True) / saved_norms
    return saved_g / saved_norms * (grad_w - saved_v / saved_norms * along), along


def of_distances() -> dict[Any, Callable[..., Any]]:
    """Returns the decompositions by their operators."""
    aten = torch.ops.aten
    return {
        aten._cdist_backward.default: distances_backward,
        aten._pdist_backward.default: pairs_backward,
        aten._weight_norm_interface_backward.default: weight_norm_backward,
    }
