"""Functions of tensors that together use every operator of the tables, one file a family, and tensors to try them on."""

from __future__ import annotations

from typing import Final

import torch
from tests.frontends.torch.cases import (
    choices,
    complex_numbers,
    elementwise,
    matrices,
    movement,
    networks,
    quantization,
    recurrent,
    regions,
    special,
)
from tests.frontends.torch.cases.tensors import ROWS, Case

FAMILIES: Final = (
    elementwise,
    networks,
    choices,
    movement,
    complex_numbers,
    matrices,
    special,
    regions,
    quantization,
    recurrent,
)
CASES: dict[str, Case] = {name: case for family in FAMILIES for name, case in family.CASES.items()}
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
    "parts of floats",
    "histograms",
    "distances",
    "strided memory",
    "a size that is an element",
    "pseudoinverses",
    "transforms",
}
SYMBOLIC: dict[str, Case] = {
    "sizes": (
        lambda x: (x.view(x.shape[0] * 3, 6), torch.cat([x, x]).view(x.shape[0] + x.shape[0], 18), x.flatten()),
        [ROWS],
    ),
    "rolled along a symbolic size": (lambda x: (x.roll(2, 0), x.roll(-1, 1), x.roll(x.shape[0], 1)), [ROWS]),
    "heads of symbolic size": (
        lambda x: torch.nn.functional.scaled_dot_product_attention(
            x.permute(1, 2, 0), x.permute(1, 2, 0), x.permute(1, 2, 0)
        ),
        [ROWS],
    ),
    "curves along symbolic sizes": (
        lambda x: (
            torch.nn.functional.interpolate(x.permute(1, 2, 0)[None], (4, 9), mode="bicubic"),
            torch.nn.functional.interpolate(x[None], scale_factor=2.0, mode="bicubic", align_corners=True),
        ),
        [ROWS],
    ),
    "sizes of others": (
        lambda x: (
            x[: x.shape[0] - 0],
            torch.zeros(x.shape[0] * x.shape[0] - x.shape[0] + 1, 3),
            torch.ones(x.shape[0] // 3 + 2),
            torch.zeros(x.shape[0] % 2 + 3),
            torch.arange(x.shape[0]),
            torch.arange(9).clamp(1, x.shape[0] + 1),
            torch.arange(x.shape[0]) >= x.shape[0] // 2,
            torch.full((torch.sym_max(x.shape[0], 1), torch.sym_min(x.shape[0], 9)), 2.0),
            torch.zeros(x.numel()),
            x.unfold(0, 2, 1),
            x.unfold(1, 2, 1),
            x.select_scatter(x[:, 0], 1, 2),
            x.slice_scatter(x[:, :2], 1, 1),
            x.slice_scatter(x, 0),
            x.diagonal(0, 1, 2),
            x.as_strided((x.shape[0], 2, 3), (18, 3 * x.shape[0], 2), x.shape[0]),
            torch.as_strided_scatter(x, x[:, 0, :2], (x.shape[0], 2), (18, 3), 1),
            x.repeat(x.shape[0], 2, 1),
            torch.nn.functional.pad(x, [x.shape[0], 1, -1, x.shape[0] - 1], value=2.0),
        ),
        [ROWS],
    ),
}
