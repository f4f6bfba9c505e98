"""Products, convolutions, pools, normalisations, attention."""

from __future__ import annotations

import torch
from tests.frontends.torch.cases.tensors import C4, D6, HEADS, IMAGES, ROWS, SERIES, VOLUME, W1, W2, W3, A, Case, F, X
from tests.frontends.torch.modules import numbers

CASES: dict[str, Case] = {
    "linear": (
        lambda x, r, w, b: (F.linear(x, w), F.linear(x, w, b), F.linear(r, w, b)),
        [X, numbers(2, 3, 4), numbers(5, 4), numbers(5)],
    ),
    "weight norm": (
        lambda v, g, h: (
            torch._weight_norm(v, g, 0),
            torch._weight_norm(v, h, 2),
            torch._weight_norm(v, h[0, 0, :1], -1),
        ),
        [numbers(4, 3, 5), numbers(4, 1, 1), numbers(1, 1, 5)],
    ),
    "baddbmm": (
        lambda b, x, y: (
            torch.baddbmm(b, x, y),
            torch.baddbmm(b[0], x, y, beta=0.5, alpha=2.0),
            torch.baddbmm(b / 0, x, y, beta=0),
        ),
        [numbers(2, 3, 5), numbers(2, 3, 4), numbers(2, 4, 5)],
    ),
    "norms of vectors": (
        lambda x: (
            A.linalg_vector_norm(x),
            A.linalg_vector_norm(x, 2, [-1], True),
            A.linalg_vector_norm(x, 1, [0]),
            A.linalg_vector_norm(x, 3.5, [0, 1]),
            A.linalg_vector_norm(x.relu(), 0, [1]),
            A.linalg_vector_norm(x, float("inf"), [1]),
            A.linalg_vector_norm(x, float("-inf")),
            A.linalg_vector_norm(x, 2, dtype=torch.float64),
        ),
        [X],
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
    "attention of padding that sees no key": (
        lambda q, k, v, a, b: (
            F.scaled_dot_product_attention(q, k, v, attn_mask=a),
            F.scaled_dot_product_attention(q, k, v, attn_mask=b),
        ),
        [*HEADS, torch.ones(5, 5).tril(-1) > 0, torch.full((5, 5), float("-inf")).triu()],
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
        lambda x, m, v, w, b: (
            F.batch_norm(x, m, v, w, b),
            F.batch_norm(x, m, v),
            A.native_batch_norm(x, w, b, m, v, False, 0.1, 1e-5),
        ),
        [IMAGES, C4, C4.abs() + 0.1, C4 + 1, C4],
    ),
    "layer_norm": (lambda x, w, b: (F.layer_norm(x, (3, 6)), F.layer_norm(x, (6,), w, b)), [ROWS, D6, D6]),
    "group_norm": (lambda x, w, b: (F.group_norm(x, 2, w, b), F.group_norm(x, 4)), [IMAGES, C4, C4]),
    "rms_norm": (lambda x, w: (F.rms_norm(x, (6,), w), F.rms_norm(x, (3, 6), eps=1e-3)), [ROWS, D6]),
    "softmax": (lambda x: (x.softmax(-1), F.log_softmax(x, 1), x.softmax(0, dtype=torch.float64)), [ROWS]),
    "more pools": (
        lambda x, v: (
            F.max_pool2d(x, 3, 2, 1, return_indices=True),
            F.max_pool2d(x[0], 2),
            F.avg_pool2d(x, 2, divisor_override=3),
            F.adaptive_avg_pool2d(x, (3, 5)),
            A.adaptive_max_pool2d(x, (3, 4)),
            A.adaptive_max_pool1d(x[0], 3),
            A.adaptive_max_pool3d(v, 2),
            F.max_pool3d(v, 2, return_indices=True),
        ),
        [IMAGES, VOLUME],
    ),
    "shared heads": (
        lambda q, k: (
            F.scaled_dot_product_attention(q, k, k, enable_gqa=True),
            F.scaled_dot_product_attention(q, k, k, is_causal=True, enable_gqa=True),
            A._scaled_dot_product_flash_attention_for_cpu(q, k, k)[0],
        ),
        [numbers(2, 4, 5, 8), numbers(2, 2, 7, 8, seed=1)],
    ),
}
