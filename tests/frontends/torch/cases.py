"""Functions of tensors that together use every operator of the table, and tensors to try them on."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeAlias

import torch
from tests.frontends.torch.modules import numbers

F, A = torch.nn.functional, torch.ops.aten
X, Y, POSITIVE = numbers(3, 4), numbers(3, 4, seed=1), numbers(3, 4).abs() + 0.1
IMAGES, ROWS, SERIES, VOLUME = numbers(2, 4, 8, 8), numbers(2, 3, 6), numbers(2, 4, 9), numbers(1, 2, 4, 6, 4)
INTS, BOOLS, MASK = torch.tensor([[3, -2], [0, 7]]), X > 0, numbers(6, 6) > 0
W2, W1, W3 = numbers(6, 4, 3, 3, seed=2), numbers(6, 4, 3, seed=2), numbers(4, 2, 3, 3, 3, seed=2)
C4, D6 = numbers(4, seed=3), numbers(6, seed=4)
HEADS = [numbers(2, 3, 5, 8, seed=k) for k in range(3)]


def ones_as_told(n: torch.Tensor) -> torch.Tensor:
    """A tensor whose size is an element of another."""
    count = n.item()
    torch._check(count >= 1)
    torch._check(count < 9)
    return torch.ones(count)


Case: TypeAlias = tuple[Callable[..., Any], list[Any]]
CASES: dict[str, Case] = {
    **{
        name: (getattr(torch, name), [X])
        for name in (
            "abs",
            "neg",
            "exp",
            "floor",
            "ceil",
            "round",
            "erf",
            "sign",
            "sin",
            "cos",
            "tanh",
            "sigmoid",
            "relu",
            "isnan",
            "isinf",
            "reciprocal",
        )
    },
    **{name: (getattr(torch, name), [POSITIVE]) for name in ("log", "sqrt", "rsqrt")},
    **{
        name: (getattr(torch, name), [X, Y])
        for name in ("mul", "div", "minimum", "maximum", "eq", "ne", "lt", "le", "gt", "ge")
    },
    "numbers": (
        lambda x: (x * 2.5, x / 3, x > 0.5, x == 0, x != 1, x < 1, x <= 0.5, x >= 0, 1 - x, x - 0.5, x + 2),
        [X],
    ),
    "scalar overloads": (
        lambda x: (
            A.mul.Scalar(x, 2),
            A.div.Scalar(x, 4),
            A.add.Scalar(x, 1, 3),
            A.sub.Scalar(x, 1, 3),
            A.rsub.Tensor(x, x, alpha=2),
        ),
        [X],
    ),
    "alpha": (lambda x, y: (torch.add(x, y, alpha=2), torch.sub(x, y, alpha=0.5), torch.rsub(x, 3, alpha=2)), [X, Y]),
    "promoted": (
        lambda x, n: (x * n, n / 2, n + 1.5, n > 0.5, torch.add(n, n, alpha=3), torch.exp(n)),
        [X[:2, :2], INTS],
    ),
    "pow": (lambda x, y: (x**2, x**0.5, x**y), [POSITIVE, Y]),
    "logic": (
        lambda a, n: (
            ~a,
            a & ~a,
            a | ~a,
            torch.logical_not(a),
            torch.logical_and(a, a),
            torch.logical_or(a, a),
            ~n,
            n & 3 * n,
            n | 2 * n,
            A.bitwise_and.Tensor(n, n),
            A.bitwise_or.Tensor(n, n),
        ),
        [BOOLS, INTS],
    ),
    "where": (lambda a, x, y: (torch.where(a, x, y), x.masked_fill(a, -1.0)), [BOOLS, X, Y]),
    "clamp": (lambda x: (x.clamp(-0.5, 0.5), x.clamp(min=0.1), F.hardtanh(x), F.relu6(x * 9)), [X]),
    "activations": (
        lambda x: (
            F.gelu(x),
            F.gelu(x, approximate="tanh"),
            F.silu(x),
            F.mish(x),
            F.hardswish(x),
            F.hardsigmoid(x),
            F.leaky_relu(x, 0.2),
        ),
        [X],
    ),
    "linear": (
        lambda x, r, w, b: (F.linear(x, w), F.linear(x, w, b), F.linear(r, w, b)),
        [X, numbers(2, 3, 4), numbers(5, 4), numbers(5)],
    ),
    "addmm": (lambda b, x, w: torch.addmm(b, x, w, beta=0.5, alpha=2.0), [numbers(5), X, numbers(4, 5)]),
    "products": (
        lambda x, y: (torch.matmul(x, y), torch.bmm(x, y), torch.mm(x[0], y[0]), x @ y[0]),
        [numbers(2, 3, 4), numbers(2, 4, 5)],
    ),
    "einsum": (lambda x, y: torch.einsum("bij,bkj->bik", x, y), [numbers(2, 3, 4), numbers(2, 5, 4)]),
    "embedding": (lambda w, i: (F.embedding(i, w), w.index_select(0, i[0])), [X, torch.tensor([[2, 0], [1, 1]])]),
    "attention": (F.scaled_dot_product_attention, HEADS),
    "causal attention": (lambda q, k, v: F.scaled_dot_product_attention(q, k, v, is_causal=True, scale=0.3), HEADS),
    "attention for gradients": (lambda q, k, v: A._scaled_dot_product_flash_attention_for_cpu(q, k, v)[0], HEADS),
    "masked attention": (
        lambda q, k, v, a, b: (
            F.scaled_dot_product_attention(q, k, v, attn_mask=a),
            F.scaled_dot_product_attention(q, k, v, attn_mask=b),
        ),
        [*HEADS, torch.eye(5) > 0, numbers(5, 5)],
    ),
    "conv1d": (
        lambda x, w, b: (F.conv1d(x, w, b, stride=2, padding=1), F.conv1d(x, w, padding="valid")),
        [SERIES, W1, D6],
    ),
    "conv2d": (
        lambda x, w, b: (
            F.conv2d(x, w, b, stride=(2, 1), padding=(1, 0)),
            F.conv2d(x, w, dilation=2, padding="same"),
            F.conv2d(x, w[:, :2], b, groups=2),
        ),
        [IMAGES, W2, D6],
    ),
    "conv3d": (lambda x, w: (F.conv3d(x, w, padding=1), F.conv3d(x, w, padding="same")), [VOLUME, W3]),
    "transposed": (
        lambda x, w, s, v, u: (
            F.conv_transpose2d(x, w.transpose(0, 1), stride=2, padding=1, output_padding=1),
            F.conv_transpose1d(s, w[0]),
            F.conv_transpose3d(v, u[:2]),
        ),
        [IMAGES, W2, SERIES, VOLUME, W3],
    ),
    "max_pool": (
        lambda s, x, v: (
            F.max_pool1d(s, 2),
            F.max_pool2d(x, 3, 2, 1, ceil_mode=True),
            F.max_pool2d(x, 2, dilation=2),
            F.max_pool3d(v, 2),
        ),
        [SERIES, IMAGES, VOLUME],
    ),
    "avg_pool": (
        lambda s, x, v: (
            F.avg_pool1d(s, 2),
            F.avg_pool2d(x, 3, 2, 1, ceil_mode=True),
            F.avg_pool2d(x, 3, 2, 1, count_include_pad=False),
            F.avg_pool3d(v, 2),
        ),
        [SERIES, IMAGES, VOLUME],
    ),
    "adaptive_avg_pool": (
        lambda s, x, v: (
            F.adaptive_avg_pool1d(s, 3),
            F.adaptive_avg_pool2d(x, 1),
            F.adaptive_avg_pool2d(x, (4, 2)),
            F.adaptive_avg_pool3d(v, 2),
        ),
        [SERIES, IMAGES, VOLUME],
    ),
    "batch_norm": (
        lambda x, m, v, w, b: (F.batch_norm(x, m, v, w, b), F.batch_norm(x, m, v)),
        [IMAGES, C4, C4.abs() + 0.1, C4 + 1, C4],
    ),
    "layer_norm": (lambda x, w, b: (F.layer_norm(x, (3, 6)), F.layer_norm(x, (6,), w, b)), [ROWS, D6, D6]),
    "group_norm": (lambda x, w, b: (F.group_norm(x, 2, w, b), F.group_norm(x, 4)), [IMAGES, C4, C4]),
    "rms_norm": (lambda x, w: (F.rms_norm(x, (6,), w), F.rms_norm(x, (3, 6), eps=1e-3)), [ROWS, D6]),
    "softmax": (lambda x: (x.softmax(-1), F.log_softmax(x, 1), x.softmax(0, dtype=torch.float64)), [ROWS]),
    "reductions": (
        lambda x: (
            x.sum(),
            x.sum((0, 2)),
            x.sum(-1, keepdim=True),
            x.mean(),
            x.mean(1),
            x.amax(1),
            x.amin((0, 1), keepdim=True),
        ),
        [ROWS],
    ),
    "chosen": (
        lambda x, n: (x.argmax(), x.argmax(1), x.argmax(-1, keepdim=True), n.any(1), n.cumsum(0), n.sum()),
        [ROWS, INTS],
    ),
    "shapes": (
        lambda x: (
            A._unsafe_view(x, [6, 6]),
            x.view(3, -1),
            x.reshape(6, 6),
            x.flatten(1),
            x.flatten(),
            x.unflatten(2, (3, -1)),
            x[:, None],
            x.unsqueeze(-1),
        ),
        [ROWS],
    ),
    "orders": (
        lambda x: (x.permute(2, 0, 1), x.transpose(0, -1), x[0].t(), x.permute(1, 0, 2).contiguous(), x.mT),
        [ROWS],
    ),
    "squeezed": (lambda x: (x.squeeze(), x.squeeze(0), x.squeeze((0, 2)), x.squeeze(1)), [numbers(1, 3, 1, 4)]),
    "repeated": (lambda x: (x[:, :1].expand(3, 5), x.expand(2, -1, 4), x.repeat(2, 1, 3)), [X]),
    "joined": (lambda x, n: (torch.cat([x, x], 1), torch.cat([x, n]), torch.stack([x, x], -1)), [X[:2, :2], INTS]),
    "pieces": (
        lambda x: (
            x.split(4, 2),
            x.split([1, 2], 1),
            x.chunk(4, -1),
            x[:, 1:],
            x[..., ::2],
            x[:, -1],
            x[:, 0],
            x[:, -2:-1],
        ),
        [ROWS],
    ),
    "as it is": (lambda x: (x.clone() + 1, x.detach() * 2, F.dropout(x, training=False), x.to(torch.float64)), [X]),
    "made": (
        lambda x: (
            torch.arange(4),
            torch.arange(1, 8, 3),
            torch.arange(2, 5, dtype=torch.float32),
            torch.zeros(2, 3),
            torch.ones(3),
            torch.full((2, 2), 7),
            torch.zeros_like(x),
            torch.ones_like(x),
            torch.full_like(x, 2.5),
            x + torch.tensor(3.0),
        ),
        [X],
    ),
    "triangles": (lambda x: (x.tril(), x.triu(1), x.tril(-1)), [ROWS]),
    "padded": (lambda x: (F.pad(x, (1, 2)), F.pad(x, (0, 1, 2, 0), value=3.0)), [ROWS]),
    "padded by elements": (
        lambda x: (F.pad(x, (1, 2), "reflect"), F.pad(x, (2, 1), "circular"), F.pad(x, (1, 1), "replicate")),
        [ROWS],
    ),
}
CASES |= {
    **{
        name: (getattr(torch, name), [(X / 4).clamp(-0.9, 0.9)])
        for name in (
            "acos",
            "asin",
            "asinh",
            "atan",
            "atanh",
            "sinh",
            "cosh",
            "tan",
            "square",
            "log1p",
            "expm1",
            "exp2",
            "erfc",
            "trunc",
        )
    },
    "functions of positive numbers": (
        lambda x: (
            torch.acosh(x + 1),
            torch.log2(x),
            torch.log10(x),
            A.special_erfc(x),
            A.fix(x * 9),
            torch.ops.prims.cbrt(-x),
        ),
        [POSITIVE],
    ),
    "logic of numbers": (
        lambda x, n: (
            torch.logical_and(x, x - x),
            torch.logical_or(x, x - x),
            torch.logical_xor(x, x - x),
            torch.logical_not(x),
            n ^ 5,
            n ^ (2 * n),
            A.__and__.Tensor(n, n + 1),
            A.__or__.Scalar(n, 4),
            A.bitwise_xor.Scalar(n, 4),
            A.bitwise_or.Scalar(n, 4),
            A.bitwise_and.Scalar(n, 4),
            A.__and__.Scalar(n, 4),
            A.__or__.Tensor(n, n + 1),
            A.__xor__.Tensor(n, n + 1),
            A.__xor__.Scalar(n, 4),
            A.bitwise_xor.Tensor(n, n + 1),
            torch.signbit(x),
            torch.copysign(x, -x),
            A.copysign.Scalar(x, -1.0),
        ),
        [X[:2, :2], INTS],
    ),
    "divided": (
        lambda x, y, n, m: (
            torch.div(x, y, rounding_mode="floor"),
            torch.div(n, m, rounding_mode="trunc"),
            torch.div(x, y, rounding_mode="trunc"),
            A.div.Scalar_mode(x, 0.3, rounding_mode="floor"),
            torch.floor_divide(n, m),
            A.floor_divide.Scalar(n, 2) if hasattr(A.floor_divide, "Scalar") else n,
            torch.fmod(x, y),
            torch.fmod(n, 2),
            torch.remainder(x, y),
            torch.remainder(n, -2),
            A.remainder.Scalar_Tensor(5, m),
            torch.atan2(x, y),
            torch.hypot(x, y),
            torch.fmax(x, y),
            torch.fmin(n, m),
            A.bitwise_left_shift.Tensor(n, m.abs()),
            A.__lshift__.Tensor(n, m.abs()),
            A.__lshift__.Scalar(n, 2),
        ),
        [X[:2, :2], Y[:2, :2], INTS, torch.tensor([[2, 3], [-2, 5]])],
    ),
    "more functions": (
        lambda x, y: (
            torch.ops.prims.pow(x.abs(), y),
            torch.round(x, decimals=1),
            torch.round(x * 100, decimals=-1),
            torch.angle(x),
            torch.lgamma(x * 3),
            A._cdist_forward(x, y, 2.0, None),
            A._cdist_forward(x, y, 3.0, None),
            A._cdist_forward(x, y, float("inf"), None),
            torch.addbmm(x[:, :3], x[None], y.t()[None], beta=0.5, alpha=2.0),
            torch.searchsorted(x.sort(1)[0], y),
            torch.searchsorted(x.sort(1)[0], x, right=True),
            x.masked_scatter(x > 0, y),
        ),
        [X, Y],
    ),
    "chosen by truth": (
        lambda a, x: (
            A.where.ScalarOther(a, x, 2.0),
            A.where.ScalarSelf(a, 2.0, x),
            A.where.Scalar(a, 2.0, 1.0),
            A.masked_fill.Tensor(x, a, torch.tensor(3.0)),
            a + a,
            a * a,
            torch.maximum(a, ~a),
            torch.minimum(a, ~a),
        ),
        [BOOLS, X],
    ),
    "indexed": (
        lambda x, i, j: (
            x[i],
            x[:, i],
            x[i, j],
            x[:, i, j],
            x[i, :, j],
            x[i[:, None], j],
            torch.gather(x, 2, j[None, None].expand(2, 3, 2)),
            x.masked_select(x[0] > 0),
            x[x > 0],
            (x[0, 0] > 0).nonzero(),
        ),
        [ROWS, torch.tensor([1, 0]), torch.tensor([1, 2])],
    ),
    "scattered": (
        lambda x, i, v: (
            x.scatter(1, i, v),
            x.scatter(1, i, 2.0),
            x.scatter_add(1, i, v),
            x.scatter_reduce(1, i, v, "amax"),
            x.scatter_reduce(1, i, v, "sum", include_self=False),
            A.index_put(x, [i[0]], v[:2, 0, None], True),
            A.index_put(x, [None, i[0]], v[:, :2]),
            A.index_put(x, [x > 0], torch.tensor(7.0)),
            A.index_put(x, [torch.ones(3, 4) > 0], torch.arange(12.0)),
        ),
        [X, torch.tensor([[1, 0], [2, 3], [3, 0]]), numbers(3, 2, seed=5)],
    ),
    "in order": (
        lambda x: (
            torch.sort(x, 1),
            torch.sort(x, stable=True, dim=0, descending=True)[0],
            A.sort.default(x, 1, True)[1],
            x.topk(2),
            x.kthvalue(2)[0],
            x.median(),
            x.median(1),
            x.max(1),
            x.min(0, keepdim=True),
            x.argmin(),
            x.argmin(1),
        ),
        [X],
    ),
    "more reductions": (
        lambda x, n: (
            x.prod(),
            x.prod(1),
            x.max(),
            x.min(),
            n.all(),
            n.any(),
            n.all(1),
            A.any.dims(n, [0, 1]),
            A.all.dims(n, [0, 1]),
            x.cumprod(1),
            A.var(x),
            A.var.dim(x, [1]),
            A.var.correction(x, [1], correction=0),
            A.var_mean.correction(x, [1], correction=1),
            torch.ops.prims.var(x, [1], 1.0),
            x.sum(0)[0].sum(0),
        ),
        [X, INTS],
    ),
    "more pools": (
        lambda x, v: (
            F.max_pool2d(x, 3, 2, 1, return_indices=True),
            F.max_pool2d(x[0], 2),
            F.avg_pool2d(x, 2, divisor_override=3),
            F.adaptive_avg_pool2d(x, (3, 5)),
            A.adaptive_max_pool2d(x, (3, 4))[0],
            A.adaptive_max_pool1d(x[0], 3)[0],
            A.adaptive_max_pool3d(v, 2)[0],
            F.max_pool3d(v, 2, return_indices=True),
        ),
        [IMAGES, VOLUME],
    ),
    "moved": (
        lambda x: (
            x.flip(0, 2),
            A.copy(x, x[:1]),
            torch.ops.prims.convert_element_type(x, torch.float64),
            x.as_strided((2, 2), (1, 4), 1),
            x.contiguous(),
        ),
        [ROWS],
    ),
    "a size that is an element": (ones_as_told, [torch.tensor(3)]),
    "more made": (
        lambda x: (
            torch.arange(0.0, 2.0, 0.5),
            torch.arange(5, 0, -2),
            x.new_zeros(2),
            x.new_ones(2),
            x.new_full((2,), 3.0),
            x.new_empty(2).fill_(1.0),
            torch.empty(2).fill_(2.0),
            torch.empty_like(x).fill_(2.0),
            A.empty_permuted([2, 3], [0, 1]) * 0,
            torch.ops.prims.iota(
                3, start=1, step=2, dtype=torch.int64, device=torch.device("cpu"), requires_grad=False
            ),
        ),
        [X],
    ),
}
BATCH = {0: torch.export.Dim("batch")}
DECOMPOSED = {
    "addmm",
    "adaptive_avg_pool",
    "batch_norm",
    "conv2d",
    "layer_norm",
    "linear",
    "max_pool",
    "transposed",
    "softmax",
    "as it is",
    "made",
    "masked attention",
    "padded",
    "products",
    "a size that is an element",
}
SYMBOLIC: dict[str, Case] = {
    "sizes": (
        lambda x: (x.view(x.shape[0] * 3, 6), torch.cat([x, x]).view(x.shape[0] + x.shape[0], 18), x.flatten()),
        [ROWS],
    ),
    "sizes of others": (
        lambda x: (
            x[: x.shape[0] - 0],
            torch.zeros(x.shape[0] * x.shape[0] - x.shape[0] + 1, 3),
            torch.ones(x.shape[0] // 3 + 2),
            torch.zeros(x.shape[0] % 2 + 3),
            torch.arange(x.shape[0]),
            torch.full((torch.sym_max(x.shape[0], 1), torch.sym_min(x.shape[0], 9)), 2.0),
            torch.zeros(x.numel()),
        ),
        [ROWS],
    ),
}
