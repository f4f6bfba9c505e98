"""Decompositions of operators that PyTorch fuses by hand and has none for: layers of transformers, and losses made in pieces.

    aten._transformer_encoder_layer_fwd(x, ...)   becomes   linear, scaled_dot_product_attention, layer_norm, relu

PyTorch takes them where no gradients are asked for; they are pieces of the same network as in training.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

import torch
from torch import Tensor
from torch.nn import functional

from weft.frontends.torch.determinants import determinants

try:
    from torch.nn.modules import linear_cross_entropy as losses
except ImportError:  # operators of PyTorch's own, which another version may name otherwise
    losses = None

SOURCE_MASK: Final = 0
PADDING_MASK: Final = 1
"""Kinds of masks: [queries, keys], and [batch, keys]; others are [batch, heads, queries, keys]."""


def attention_of_heads(  # the arguments are those of PyTorch's operator
    query: Tensor,
    key: Tensor,
    value: Tensor,
    embed_dim: int,
    num_head: int,
    qkv_weight: Tensor,
    qkv_bias: Tensor,
    proj_weight: Tensor,
    proj_bias: Tensor,
    mask: Tensor | None = None,
    need_weights: bool = True,
    average_attn_weights: bool = True,
    mask_type: int | None = None,
) -> tuple[Tensor, Tensor]:
    """Returns attention [batch, queries, embed_dim], and the weights, of each head or their mean, if asked for."""
    weights, biases = qkv_weight.chunk(3), qkv_bias.chunk(3)
    heads = [
        functional.linear(x, w, b).unflatten(-1, (num_head, -1)).transpose(1, 2)
        for x, w, b in zip((query, key, value), weights, biases, strict=True)
    ]
    q, k, v = heads
    allowed = None if mask is None else _allowed(mask, mask_type)
    if not need_weights:
        made = functional.scaled_dot_product_attention(q, k, v, attn_mask=allowed)
        return _joined(made, proj_weight, proj_bias), query.new_empty(0)
    scores = q @ k.transpose(-2, -1) * q.shape[-1] ** -0.5
    if allowed is not None:
        scores = scores.masked_fill(allowed.logical_not(), float("-inf"))
    shares = scores.softmax(-1)
    return _joined(shares @ v, proj_weight, proj_bias), shares.mean(1) if average_attn_weights else shares


def encoder_layer(  # the arguments are those of PyTorch's operator
    src: Tensor,
    embed_dim: int,
    num_heads: int,
    qkv_weight: Tensor,
    qkv_bias: Tensor,
    proj_weight: Tensor,
    proj_bias: Tensor,
    use_gelu: bool,
    norm_first: bool,
    eps: float,
    norm_weight_1: Tensor,
    norm_bias_1: Tensor,
    norm_weight_2: Tensor,
    norm_bias_2: Tensor,
    ffn_weight_1: Tensor,
    ffn_bias_1: Tensor,
    ffn_weight_2: Tensor,
    ffn_bias_2: Tensor,
    mask: Tensor | None = None,
    mask_type: int | None = None,
) -> Tensor:
    """Returns a layer of an encoder: attention and two linear layers, each added to its input and normalized before or after."""

    def attended(x: Tensor) -> Tensor:
        of_heads = (qkv_weight, qkv_bias, proj_weight, proj_bias, mask, False, True, mask_type)
        return attention_of_heads(x, x, x, embed_dim, num_heads, *of_heads)[0]

    def fed_forward(x: Tensor) -> Tensor:
        hidden = functional.linear(x, ffn_weight_1, ffn_bias_1)
        hidden = functional.gelu(hidden) if use_gelu else functional.relu(hidden)
        return functional.linear(hidden, ffn_weight_2, ffn_bias_2)

    x = src
    for apart, weight, bias in ((attended, norm_weight_1, norm_bias_1), (fed_forward, norm_weight_2, norm_bias_2)):
        if norm_first:
            x = x + apart(functional.layer_norm(x, (embed_dim,), weight, bias, eps))
        else:
            x = functional.layer_norm(x + apart(x), (embed_dim,), weight, bias, eps)
    return x


def _allowed(mask: Tensor, mask_type: int | None) -> Tensor:
    """Returns which elements may be attended to: those where the mask is 0."""
    allowed = mask.logical_not() if mask.dtype is torch.bool else mask == 0
    return allowed[:, None, None, :] if mask_type == PADDING_MASK else allowed


def _joined(heads: Tensor, weight: Tensor, bias: Tensor) -> Tensor:
    return functional.linear(heads.transpose(1, 2).flatten(2), weight, bias)


def chunked_loss_of_each(
    input: Tensor,
    linear_weight: Tensor,
    target: Tensor,
    linear_bias: Tensor | None,
    weight: Tensor | None,
    ignore_index: int,
    *_: Any,
) -> Tensor:
    """Returns the cross entropy [rows] of a linear layer."""
    logits = functional.linear(input, linear_weight, linear_bias)
    return functional.cross_entropy(logits, target, weight, ignore_index=ignore_index, reduction="none")


def chunked_loss(  # the arguments are those of PyTorch's operator
    input: Tensor,
    linear_weight: Tensor,
    target: Tensor,
    linear_bias: Tensor | None,
    weight: Tensor | None,
    reduction: str,
    ignore_index: int,
    label_smoothing: float,
    batch_chunk_size: int,
    acc_policy: str,
    acc_dtype: torch.dtype,
    allow_retain_graph: bool,
    compute_input_grad: bool,
    compute_linear_weight_grad: bool,
    compute_linear_bias_grad: bool,
) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """Returns the cross entropy of a linear layer, and its gradients by the input, the matrix and the bias, if asked for."""
    logits = functional.linear(input, linear_weight, linear_bias)
    how: dict[str, Any] = {"ignore_index": ignore_index, "label_smoothing": label_smoothing}
    loss = functional.cross_entropy(logits, target, weight, reduction=reduction, **how)
    none = input.new_empty(0, 0)
    if not (compute_input_grad or compute_linear_weight_grad or compute_linear_bias_grad):
        return loss, none, none, input.new_empty(0)
    grad = _gradient_of_logits(logits, target, weight, ignore_index, label_smoothing, is_mean=reduction == "mean")
    return (
        loss,
        grad @ linear_weight if compute_input_grad else none,
        grad.mT @ input if compute_linear_weight_grad else none,
        grad.sum(0) if compute_linear_bias_grad else input.new_empty(0),
    )


def _gradient_of_logits(
    logits: Tensor, target: Tensor, weight: Tensor | None, ignore_index: int, smoothing: float, *, is_mean: bool
) -> Tensor:
    """Returns the gradient of the cross entropy [rows, classes]: of the target's class, and a share of all of them."""
    classes = logits.shape[1]
    weight = logits.new_ones(classes) if weight is None else weight
    counts = target != ignore_index
    target = torch.where(counts, target, 0)
    own = torch.where(counts, weight[target], 0)[:, None]
    shares, chosen = logits.softmax(1), functional.one_hot(target, classes).to(logits.dtype)
    of_all = (shares * weight.sum() - weight) * counts[:, None] * (smoothing / classes)
    grad = (1 - smoothing) * own * (shares - chosen) + of_all
    return grad / own.sum() if is_mean else grad


def fused_operators() -> dict[Any, Callable[..., Any]]:
    """Returns the decompositions by their operators."""
    aten = torch.ops.aten
    made: dict[Any, Callable[..., Any]] = {
        aten._native_multi_head_attention.default: attention_of_heads,
        aten._transformer_encoder_layer_fwd.default: encoder_layer,
        **determinants(),
    }
    if losses is not None:
        made[losses._linear_cross_entropy_batch_chunked._opoverload] = chunked_loss
        made[losses._linear_cross_entropy_batch_chunked_no_reduction._opoverload] = chunked_loss_of_each
    return made
