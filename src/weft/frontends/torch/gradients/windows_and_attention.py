"""Gradients of convolutions, of attention, and of pools and resized images.

    aten.convolution_backward(g, x, w, ...)   becomes   a convolution by w, and a product of g with the windows of x

An operator that is linear along each dimension of space (averages of windows, nearest elements, pads) is a product with a matrix,
which it makes of an identity, and its gradient the product with the transpose.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import torch
from torch import Tensor
from torch.nn import functional


def convolution_backward(  # the arguments are those of PyTorch's operator
    grad_output: Tensor,
    input: Tensor,
    weight: Tensor,
    bias_sizes: Sequence[int] | None,
    stride: Sequence[int],
    padding: Sequence[int],
    dilation: Sequence[int],
    transposed: bool,
    output_padding: Sequence[int],
    groups: int,
    output_mask: Sequence[bool],
) -> tuple[Tensor | None, Tensor | None, Tensor | None]:
    """Returns the gradients by the input, the weights and the biases, where *output_mask* asks for them."""
    space = range(2, input.dim())
    stride, padding, dilation = ([*v] * (len(space) if len(v) == 1 else 1) for v in (stride, padding, dilation))
    of_input = of_weight = of_bias = None
    if output_mask[0]:
        spare = [0] * len(space)
        if not transposed:
            reach = [stride[k] * (grad_output.shape[d] - 1) for k, d in enumerate(space)]
            kernel = [dilation[k] * (weight.shape[d] - 1) + 1 for k, d in enumerate(space)]
            spare = [input.shape[d] + 2 * padding[k] - reach[k] - kernel[k] for k, d in enumerate(space)]
        of_input = torch.ops.aten.convolution(
            grad_output, weight, None, stride, padding, dilation, not transposed, spare, groups
        )
    if output_mask[1]:
        slides, steps = (grad_output, input) if transposed else (input, grad_output)
        of_weight = _of_weight(slides, steps, weight.shape, stride, padding, dilation, groups)
    if output_mask[2]:
        of_bias = grad_output.sum([0, *space])
    return of_input, of_weight, of_bias


def _of_weight(
    x: Tensor,
    grad: Tensor,
    shape: Sequence[int],
    stride: Sequence[int],
    padding: Sequence[int],
    dilation: Sequence[int],
    groups: int,
) -> Tensor:
    """Returns the products of *grad* [batch, g * out, ...] with the windows of *x* [batch, g * in, ...], of weights' *shape*."""
    padded = functional.pad(x, [p for n in reversed(padding) for p in (n, n)])
    batch, sizes = x.shape[0], grad.shape[2:]

    def at(place: Sequence[int]) -> Tensor:
        found = padded
        for k, n in enumerate(place):
            start = n * dilation[k]
            found = found[(slice(None),) * (2 + k) + (slice(start, start + stride[k] * (sizes[k] - 1) + 1, stride[k]),)]
        return found.reshape(batch, groups, shape[1], -1)

    windows = torch.stack([at(p) for p in itertools.product(*map(range, shape[2:]))], 3)
    of_groups = grad.reshape(batch, groups, shape[0] // groups, -1)
    return torch.einsum("bgol,bgikl->goik", of_groups, windows).reshape(tuple(shape))


def attention_backward(  # the arguments are those of PyTorch's operator
    grad_out: Tensor,
    query: Tensor,
    key: Tensor,
    value: Tensor,
    out: Tensor,
    logsumexp: Tensor,
    dropout_p: float,
    is_causal: bool,
    *,
    attn_mask: Tensor | None = None,
    scale: float | None = None,
) -> tuple[Tensor, Tensor, Tensor]:
    """Returns the gradients of attention [batch, heads, queries, size] by queries, keys and values; shares are computed anew."""
    factor = query.shape[-1] ** -0.5 if scale is None else scale
    scores = (query @ key.mT) * factor
    if is_causal:
        ahead = torch.ones(scores.shape[-2:], dtype=torch.bool, device=query.device).triu(1)
        scores = scores.masked_fill(ahead, float("-inf"))
    if attn_mask is not None:
        scores = scores + attn_mask
    shares = (scores.float() if query.dtype != torch.float64 else scores).softmax(-1).to(query.dtype)
    if attn_mask is not None:  # queries that see no key have no shares, and attention of 0
        shares = shares.masked_fill((attn_mask == float("-inf")).all(-1, keepdim=True), 0)
    of_shares = grad_out @ value.mT
    of_scores = shares * (of_shares - (grad_out * out).sum(-1, keepdim=True)) * factor
    return of_scores @ key, of_scores.mT @ query, shares.mT @ grad_out


def _transposed_along(grad: Tensor, sizes: Sequence[int], along: Callable[[Tensor, int], Tensor]) -> Tensor:
    """Returns the gradient by a tensor whose last dimensions have *sizes*: *along* maps [n, 1, size] as the operator does it."""
    for k, size in enumerate(sizes):
        axis = grad.dim() - len(sizes) + k
        matrix = along(torch.eye(size, dtype=grad.dtype, device=grad.device)[:, None], k)[:, 0]
        grad = (grad.transpose(axis, -1) @ matrix.mT).transpose(axis, -1)
    return grad


def average_pool_backward(
    grad_output: Tensor,
    input: Tensor,
    kernel_size: Sequence[int],
    stride: Sequence[int],
    padding: Sequence[int],
    ceil_mode: bool,
    count_include_pad: bool,
    divisor_override: int | None,
    space: int = 2,
) -> Tensor:
    """Returns the gradient of averages of windows of *space* dimensions."""
    kernel, steps, pads = ([*v] * (space if len(v) == 1 else 1) for v in (kernel_size, stride or kernel_size, padding))
    divisor = None if divisor_override is None else 1

    def along(x: Tensor, k: int) -> Tensor:
        window = (kernel[k], 1), (steps[k], 1), (pads[k], 0)
        return functional.avg_pool2d(x[..., None], *window, ceil_mode, count_include_pad, divisor)[..., 0]

    grad_output = grad_output if divisor_override is None else grad_output / divisor_override
    return _transposed_along(grad_output, input.shape[-space:], along)


def adaptive_average_pool_backward(grad_output: Tensor, self: Tensor, space: int) -> Tensor:
    """Returns the gradient of averages of as many windows as there are results, in *space* dimensions."""
    sizes = grad_output.shape[-space:]
    return _transposed_along(
        grad_output, self.shape[-space:], lambda x, k: functional.adaptive_avg_pool1d(x, int(sizes[k]))
    )


def nearest_backward(op: Any) -> Callable[..., Tensor]:
    """Returns the gradient of nearest elements, by the operator for one dimension."""

    def backward(
        grad_output: Tensor, output_size: Sequence[int], input_size: Sequence[int], *scales: float | None
    ) -> Tensor:
        def along(x: Tensor, k: int) -> Tensor:
            made: Tensor = op(x, [output_size[k]], scales[k] if k < len(scales) else None)
            return made

        return _transposed_along(grad_output, input_size[2:], along)

    return backward


def antialiased_backward(op: Any) -> Callable[..., Tensor]:
    """Returns the gradient of images that are resized with filters as wide as steps, by the operator for images."""

    def backward(
        grad_output: Tensor,
        output_size: Sequence[int],
        input_size: Sequence[int],
        align_corners: bool,
        *scales: float | None,
    ) -> Tensor:
        def along(x: Tensor, k: int) -> Tensor:
            scale = scales[k] if k < len(scales) else None
            made: Tensor = op(x[:, :, None], [1, output_size[k]], align_corners, None, scale)
            return made[:, :, 0]

        return _transposed_along(grad_output, input_size[2:], along)

    return backward


def replication_pad_backward(grad_output: Tensor, self: Tensor, padding: Sequence[int]) -> Tensor:
    """Returns the gradient of pads that repeat the outermost elements."""
    pairs = [tuple(padding[k : k + 2]) for k in range(0, len(padding), 2)][::-1]
    return _transposed_along(
        grad_output, self.shape[-len(pairs) :], lambda x, k: functional.pad(x, pairs[k], mode="replicate")
    )


def of_windows_and_attention() -> dict[Any, Callable[..., Any]]:
    """Returns the decompositions by their operators."""
    aten = torch.ops.aten
    return {
        aten.convolution_backward.default: convolution_backward,
        aten._scaled_dot_product_flash_attention_for_cpu_backward.default: attention_backward,
        aten.avg_pool2d_backward.default: average_pool_backward,
        aten.avg_pool3d_backward.default: partial(average_pool_backward, space=3),
        aten._adaptive_avg_pool2d_backward.default: lambda g, x: adaptive_average_pool_backward(g, x, 2),
        aten._adaptive_avg_pool3d_backward.default: lambda g, x: adaptive_average_pool_backward(g, x, 3),
        aten.upsample_nearest2d_backward.default: nearest_backward(aten.upsample_nearest1d.default),
        aten.upsample_nearest3d_backward.default: nearest_backward(aten.upsample_nearest1d.default),
        aten._upsample_nearest_exact2d_backward.default: nearest_backward(aten._upsample_nearest_exact1d.default),
        aten._upsample_bilinear2d_aa_backward.default: antialiased_backward(aten._upsample_bilinear2d_aa.default),
        aten._upsample_bicubic2d_aa_backward.default: antialiased_backward(aten._upsample_bicubic2d_aa.default),
        **{
            op.default: replication_pad_backward
            for op in (
                aten.replication_pad1d_backward,
                aten.replication_pad2d_backward,
                aten.replication_pad3d_backward,
            )
        },
    }
