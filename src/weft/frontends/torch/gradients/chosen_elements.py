"""Gradients of operators that choose elements: the largest ones of windows, and those where a mask holds.

aten.max_pool3d_with_indices_backward(g, x, ..., indices)   becomes   zeros.scatter_add(indices, g)
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import torch
from torch import Tensor


def _of_largest(grad_output: Tensor, self: Tensor, *how: Any, space: int, indices: Tensor | None = None) -> Tensor:
    """Returns the gradient by *self* of elements whose places in its last *space* dimensions are the last argument."""
    places: Tensor = how[-1] if indices is None else indices
    lead = self.shape[: self.dim() - space]
    flat = grad_output.new_zeros(*lead, self.shape[-space:].numel())
    made = flat.scatter_add(-1, places.reshape(*lead, -1), grad_output.reshape(*lead, -1))
    return made.reshape(self.shape)


def masked_scatter_backward(grad_output: Tensor, mask: Tensor, sizes: Sequence[int]) -> Tensor:
    """Returns the gradient by the tensor, of *sizes*, whose first elements were put where *mask* holds, one after another."""
    count = torch.Size(sizes).numel()
    chosen = mask.expand_as(grad_output).reshape(-1)
    places = torch.where(chosen, chosen.cumsum(0) - 1, count)  # all others go behind the last one
    return grad_output.new_zeros(count + 1).scatter(0, places, grad_output.reshape(-1))[:count].reshape(tuple(sizes))


def of_chosen_elements() -> dict[Any, Callable[..., Any]]:
    """Returns the decompositions by their operators."""
    aten = torch.ops.aten
    plane, volume = partial(_of_largest, space=2), partial(_of_largest, space=3)
    return {
        aten.adaptive_max_pool2d_backward.default: plane,
        aten.adaptive_max_pool3d_backward.default: volume,
        aten.fractional_max_pool2d_backward.default: plane,
        aten.fractional_max_pool3d_backward.default: volume,
        aten.max_pool3d_with_indices_backward.default: volume,
        aten.masked_scatter_backward.default: masked_scatter_backward,
    }
