"""The decompositions of operators that PyTorch computes whole, each compared with the operator."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable
from typing import Any

import pytest

torch = pytest.importorskip("torch")

from tests.frontends.torch.modules import numbers  # noqa: E402

from weft.frontends.torch import fused_operators, gradients  # noqa: E402

A, F = torch.ops.aten, torch.nn.functional


def same(op: Any, *given: Any, **named: Any) -> None:
    made = {**gradients.gradients(), **fused_operators.fused_operators()}[op](*given, **named)
    wanted = op(*given, **named)
    for a, b in zip(*[v if isinstance(v, tuple) else (v,) for v in (made, wanted)], strict=True):
        if b is not None and (a.numel() or b.numel()):
            torch.testing.assert_close(a, b, rtol=1e-4, atol=1e-5)


CONVOLUTIONS = {
    "strides and dilations": (2, 1, [2, 1], [1, 0], [1, 2], False, [0, 0]),
    "groups": (2, 2, [3, 3], [2, 2], [1, 1], False, [0, 0]),
    "channel by channel": (2, 4, [2, 2], [1, 1], [1, 1], False, [0, 0]),
    "one dimension": (1, 1, [1], [0], [1], False, [0]),
    "three": (3, 1, [2], [1], [1], False, [0]),
    "transposed": (2, 2, [2, 3], [0, 1], [2, 1], True, [0, 1]),
}


@pytest.mark.parametrize("case", CONVOLUTIONS.values(), ids=CONVOLUTIONS)
def test_convolutions(case: tuple[Any, ...]) -> None:
    n, groups, *how = case
    x, w = numbers(2, 4, *[9] * n), numbers(4, 4 // groups, *[3] * n, seed=1)
    grad = numbers(*A.convolution(x, w, None, *how, groups).shape, seed=2)
    same(A.convolution_backward.default, grad, x, w, [4], *how, groups, [True] * 3)
    same(A.convolution_backward.default, grad, x, w, None, *how, groups, [False, True, False])


PADDED: Any = torch.zeros(2, 1, 5, 6).index_fill(2, torch.tensor([0, 3]), float("-inf"))
"""A mask by which two queries see no key."""


@pytest.mark.parametrize("mask", [None, numbers(2, 1, 5, 6), PADDED], ids=["whole", "masked", "padded"])
def test_attention(mask: Any) -> None:
    q, k, v = numbers(2, 4, 5, 8), numbers(2, 4, 6, 8, seed=1), numbers(2, 4, 6, 8, seed=2)
    backward = A._scaled_dot_product_flash_attention_for_cpu_backward.default
    forward = A._scaled_dot_product_flash_attention_for_cpu
    out, log = forward(q, k, v, 0.0, False, attn_mask=mask)
    same(backward, numbers(2, 4, 5, 8, seed=3), q, k, v, out, log, 0.0, False, attn_mask=mask)
    out, log = forward(q, k[:, :, :5], v[:, :, :5], 0.0, True)
    same(backward, numbers(2, 4, 5, 8, seed=3), q, k[:, :, :5], v[:, :, :5], out, log, 0.0, True)


def test_averages_of_windows() -> None:
    x = numbers(2, 3, 8, 7)
    for *how, divisor in itertools.product(([2, 2], []), ([1, 1],), (False, True), (False, True), (None, 4)):
        grad = numbers(*A.avg_pool2d(x, [3, 2], *how, divisor).shape, seed=1)
        same(A.avg_pool2d_backward.default, grad, x, [3, 2], *how, divisor)
    y = numbers(3, 8, 7, 6)
    same(A.avg_pool3d_backward.default, numbers(3, 4, 3, 3), y, [2, 2, 2], [], [0, 0, 0], False, True, None)
    same(A._adaptive_avg_pool2d_backward.default, numbers(2, 3, 3, 2), x)
    same(A._adaptive_avg_pool3d_backward.default, numbers(3, 3, 2, 2), y)


LINEAR: dict[str, Callable[[], None]] = {
    "nearest": lambda: same(
        A.upsample_nearest2d_backward.default, numbers(2, 3, 11, 14), [11, 14], [2, 3, 8, 7], None, 2.0
    ),
    "nearest of three": lambda: same(
        A.upsample_nearest3d_backward.default, numbers(2, 3, 4, 6, 2), [4, 6, 2], [2, 3, 2, 3, 2]
    ),
    "nearest, exact": lambda: same(
        A._upsample_nearest_exact2d_backward.default, numbers(2, 3, 11, 14), [11, 14], [2, 3, 8, 7]
    ),
    "cubic, as wide as steps": lambda: same(
        A._upsample_bicubic2d_aa_backward.default, numbers(2, 3, 4, 9), [4, 9], [2, 3, 8, 7], False, None, None
    ),
    "repeated": lambda: same(
        A.replication_pad2d_backward.default, numbers(2, 3, 11, 10), numbers(2, 3, 8, 7), [1, 2, 0, 3]
    ),
}


@pytest.mark.parametrize("compare", LINEAR.values(), ids=LINEAR)
def test_what_is_linear_along_dimensions(compare: Callable[[], None]) -> None:
    compare()


@pytest.mark.parametrize("is_volume", [False, True], ids=["images", "volumes"])
@pytest.mark.parametrize("padding", [0, 1, 2], ids=["zeros", "border", "reflection"])
def test_samples_at_the_points_of_a_grid(is_volume: bool, padding: int) -> None:
    sizes = (5, 6, 1, 4)[: 3 if is_volume else 2]
    op = A.grid_sampler_3d_backward.default if is_volume else A.grid_sampler_2d_backward.default
    x, grid = numbers(2, 3, *sizes), numbers(2, *[4] * len(sizes), len(sizes), seed=1)
    grad = numbers(2, 3, *[4] * len(sizes), seed=2)
    for mode, align in itertools.product((0, 1), (False, True)):
        same(op, grad, x, grid, mode, padding, align, [True, True])
    assert gradients.gradients()[op](grad, x, grid, 0, padding, True, [False, True])[0] is None
    assert gradients.gradients()[op](grad, x, grid, 2, padding, True, [True, True]) is NotImplemented


@pytest.mark.parametrize("p", [0.0, 0.5, 1.0, 2.0, 3.0, math.inf])
def test_distances(p: float) -> None:
    x, y = numbers(2, 5, 3), numbers(2, 6, 3, seed=1)
    y[:, 2], x[0, 1, 0] = x[:, 4], y[0, 0, 0]  # a distance of zero, and one along two dimensions only
    same(A._cdist_backward.default, numbers(2, 5, 6, seed=2), x, y, p, torch.cdist(x, y, p))
    rows = torch.cat([x[0], x[0, :1]])
    same(A._pdist_backward.default, numbers(15, seed=3), rows, p, F.pdist(rows, p))


@pytest.mark.parametrize("dim", [0, 2])
def test_lengths_and_directions(dim: int) -> None:
    v, grad = numbers(4, 3, 5), numbers(4, 3, 5, seed=1)
    g = numbers(*[v.shape[d] if d == dim else 1 for d in range(3)], seed=2)
    _, norms = A._weight_norm_interface(v, g, dim)
    same(A._weight_norm_interface_backward.default, grad, v, g, norms, dim)


def test_elements_that_were_chosen() -> None:
    x, y = numbers(2, 3, 7, 6), numbers(2, 3, 6, 5, 4)
    made, places = A.adaptive_max_pool2d(x, [3, 4])
    same(A.adaptive_max_pool2d_backward.default, numbers(*made.shape), x, places)
    made, places = A.adaptive_max_pool3d(y, [2, 3, 3])
    same(A.adaptive_max_pool3d_backward.default, numbers(*made.shape), y, places)
    made, places = A.fractional_max_pool2d(x, [2, 2], [4, 4], torch.full((2, 3, 2), 0.4))
    same(A.fractional_max_pool2d_backward.default, numbers(*made.shape), x, [2, 2], [4, 4], places)
    how = [3, 2, 2], [1, 2, 1], [1, 0, 1], [1, 1, 1], False
    made, places = A.max_pool3d_with_indices(y, *how)
    same(A.max_pool3d_with_indices_backward.default, numbers(*made.shape), y, *how, places)
    mask, sizes = x > 0.3, [5, 30]
    assert mask.sum() < 150
    same(A.masked_scatter_backward.default, numbers(*x.shape, seed=1), mask, sizes)


@pytest.mark.parametrize("norm_first", [True, False])
def test_layers_of_encoders(norm_first: bool) -> None:
    x = numbers(2, 5, 8)
    heads = [numbers(24, 8) / 3, numbers(24), numbers(8, 8), numbers(8)]
    rest = [numbers(8), numbers(8, seed=1), numbers(8, seed=2), numbers(8), numbers(16, 8), numbers(16), numbers(8, 16)]
    padding = torch.tensor([[False] * 5, [False] * 3 + [True] * 2])
    ahead = torch.ones(5, 5, dtype=torch.bool).triu(1)
    for mask, kind in ((None, None), (ahead, 0), (padding, 1)):
        layer = A._transformer_encoder_layer_fwd.default
        same(layer, x, 8, 2, *heads, norm_first, norm_first, 1e-5, *rest, numbers(8), mask, kind)
        for weights, mean in ((False, True), (True, True), (True, False)):
            same(A._native_multi_head_attention.default, x, x, x, 8, 2, *heads, mask, weights, mean, kind)


@pytest.mark.parametrize("reduction", ["mean", "sum"])
def test_losses_made_in_pieces(reduction: str) -> None:
    x, w, bias = numbers(6, 4), numbers(5, 4, seed=1), numbers(5, seed=2)
    target, of_class = torch.tensor([0, 4, 2, -100, 1, 1]), numbers(5, seed=3).abs()
    made = fused_operators.chunked_loss(
        x, w, target, bias, of_class, reduction, -100, 0.1, 2, "auto", torch.float32, *[True] * 4
    )
    given = [t.clone().requires_grad_() for t in (x, w, bias)]
    logits = F.linear(*given)
    loss = F.cross_entropy(logits, target, of_class, reduction=reduction, label_smoothing=0.1)
    wanted = (loss.detach(), *torch.autograd.grad(loss, given))
    torch.testing.assert_close(made, wanted)
    each = fused_operators.chunked_loss_of_each(x, w, target, bias, of_class, -100, 2, "auto", torch.float32)
    torch.testing.assert_close(each, F.cross_entropy(F.linear(x, w, bias), target, of_class, reduction="none"))
    assert torch.ops.torch_nn._linear_cross_entropy_batch_chunked.default in fused_operators.fused_operators()
