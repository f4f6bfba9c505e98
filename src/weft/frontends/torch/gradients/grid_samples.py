"""Gradients of samples of images and volumes at the points of a grid.

    aten.grid_sampler_2d_backward(g, x, points, ...)   becomes   gathers at the corners around each point, and a scatter_add

A sample is the sum of its corners' elements, each times a product of shares, one for each dimension: it is linear in the image,
and in each coordinate between two elements.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence
from math import prod
from typing import Any, NamedTuple

import torch
from torch import Tensor

LINEAR, NEAREST = 0, 1
"""Modes of interpolation; gradients of the cubic one are left to PyTorch."""
ZEROS, BORDER = 0, 1
"""Modes of padding outside of an image; the third, its reflection, is left."""


class Axis(NamedTuple):
    """Coordinates along one dimension, in steps between elements, and their derivatives by those of the grid."""

    at: Tensor
    slope: Tensor
    size: int


def grid_sampler_backward(
    grad_output: Tensor,
    input: Tensor,
    grid: Tensor,
    interpolation_mode: int,
    padding_mode: int,
    align_corners: bool,
    output_mask: Sequence[bool],
) -> tuple[Tensor | None, Tensor | None]:
    """Returns the gradients by the image [batch, channels, ...] and the grid [batch, ..., dimensions], as *output_mask* asks."""
    if interpolation_mode not in (LINEAR, NEAREST):
        return NotImplemented  # type: ignore[no-any-return] # PyTorch keeps the operator then
    batch, channels, *sizes = input.shape
    flat = grid.reshape(batch, -1, len(sizes)).flip(-1)  # the last dimension's coordinate is first
    axes = [_axis(flat[..., d], n, padding_mode, align_corners) for d, n in enumerate(sizes)]
    grad, image = grad_output.reshape(batch, channels, -1), input.reshape(batch, channels, -1)
    of_image, of_axes = torch.zeros_like(image), [torch.zeros_like(a.at) for a in axes]
    for corner in itertools.product((0, 1), repeat=len(sizes)) if interpolation_mode == LINEAR else [None]:
        places, shares, slopes = _corner(axes, corner)
        wide = places[:, None].expand(-1, channels, -1)
        of_image = of_image.scatter_add(2, wide, grad * shares[:, None])
        along = (grad * image.gather(2, wide)).sum(1)
        of_axes = [made + along * slope for made, slope in zip(of_axes, slopes, strict=True)]
    of_grid = torch.stack([made * a.slope for made, a in zip(of_axes, axes, strict=True)], -1)
    return (
        of_image.reshape(input.shape) if output_mask[0] else None,
        of_grid.flip(-1).reshape(grid.shape) if output_mask[1] else None,
    )


def _axis(given: Tensor, size: int, padding_mode: int, align_corners: bool) -> Axis:
    """Returns the places of coordinates between -1 and 1, taken back into the image as *padding_mode* says."""
    steps = (size - 1) / 2 if align_corners else size / 2
    at = (given + 1) * steps - (0 if align_corners else 0.5)
    slope = torch.full_like(at, steps)
    if padding_mode == ZEROS:
        return Axis(at, slope, size)
    if padding_mode != BORDER:
        at, slope = _reflected(at, slope, size, align_corners)
    inside = (at > 0) & (at < size - 1)
    return Axis(at.clamp(0, size - 1), torch.where(inside, slope, 0), size)


def _reflected(at: Tensor, slope: Tensor, size: int, align_corners: bool) -> tuple[Tensor, Tensor]:
    """Returns coordinates reflected at the outermost elements, or at their outer edges, as often as it takes."""
    low, span = (0.0, float(size - 1)) if align_corners else (-0.5, float(size))
    if span == 0:
        return torch.zeros_like(at), torch.zeros_like(slope)
    away = (at - low).abs()
    flips = (away / span).floor()
    rest, is_even = away - flips * span, flips.remainder(2) == 0
    turned = torch.where(is_even, slope, -slope)
    return torch.where(is_even, rest, span - rest) + low, torch.where(at < low, -turned, turned)


def _corner(axes: Sequence[Axis], corner: Sequence[int] | None) -> tuple[Tensor, Tensor, list[Tensor]]:
    """Returns the places [batch, points] of a corner in an image, or of the nearest elements where there is none.

    With them come their shares, and the derivatives of these by each coordinate; outside of the image both are zero.
    """
    whole = [a.at.round() if corner is None else a.at.floor() + corner[d] for d, a in enumerate(axes)]
    inside = torch.stack([(w >= 0) & (w < a.size) for w, a in zip(whole, axes, strict=True)]).all(0)
    places = torch.zeros_like(whole[0], dtype=torch.int64)
    for w, a in zip(whole, axes, strict=True):
        places = places * a.size + w.clamp(0, a.size - 1).to(torch.int64)
    if corner is None:
        return places, inside.to(axes[0].at.dtype), [torch.zeros_like(a.at) for a in axes]
    shares = [1 - (a.at - w).abs() for w, a in zip(whole, axes, strict=True)]
    signs = [1 if k else -1 for k in corner]
    slopes = [
        torch.where(inside, prod(shares[:d] + shares[d + 1 :], start=torch.ones_like(shares[d])) * signs[d], 0)
        for d in range(len(axes))
    ]
    return places, torch.where(inside, prod(shares[1:], start=shares[0]), 0), slopes


def of_grid_samples() -> dict[Any, Callable[..., Any]]:
    """Returns the decompositions by their operators."""
    aten = torch.ops.aten
    return {
        aten.grid_sampler_2d_backward.default: grid_sampler_backward,
        aten.grid_sampler_3d_backward.default: grid_sampler_backward,
    }
