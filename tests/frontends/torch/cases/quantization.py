"""Quantized tensors, and floats that are rounded as if they were quantized."""

from __future__ import annotations

from typing import Any

import torch
import torch.ao.quantization.fx._decomposed  # declares the operators of `quantized_decomposed`
from tests.frontends.torch.cases.tensors import A, Case
from tests.frontends.torch.modules import numbers

Q: Any = torch.ops.quantized_decomposed
BYTES = (-128, 127, torch.int8)
UPPER = (0, 255, torch.uint8)
SCALES, POINTS = torch.tensor([0.05, 0.1, 0.2]), torch.tensor([0, 3, -2])
LIMITS = torch.tensor(-8), torch.tensor(7)


def dynamic(x: torch.Tensor) -> Any:
    """Quantization by parameters that a call finds."""
    scale, point = Q.choose_qparams.tensor(x, *BYTES[:2], 1e-5, torch.int8)
    made = Q.quantize_per_tensor.tensor(x, scale, point, *BYTES)
    return scale, point, made, Q.dequantize_per_tensor.tensor(made, scale, point, *BYTES)


CASES: dict[str, Case] = {
    "quantized": (
        lambda x, w: (
            (a := Q.quantize_per_tensor.default(x, 0.1, 3, *BYTES)),
            Q.dequantize_per_tensor.default(a, 0.1, 3, *BYTES),
            (b := Q.quantize_per_tensor.tensor2(x, SCALES[0], POINTS[1], *LIMITS, torch.int8)),
            Q.dequantize_per_tensor.tensor2(b, SCALES[0], POINTS[1], *LIMITS, torch.int8),
            (d := Q.quantize_per_channel.default(w, SCALES, POINTS, 0, -127, 127, torch.int8)),
            Q.dequantize_per_channel.default(d, SCALES, POINTS, 0, -127, 127, torch.int8),
            Q.dequantize_per_channel.default(d, SCALES, None, 0, -127, 127, torch.int8),
            Q.quantize_per_channel.default(x, SCALES, POINTS.abs(), 1, *UPPER),
            *dynamic(x),
        ),
        [numbers(4, 3) * 9, numbers(3, 4, seed=1) * 9],
    ),
    "products of bytes": (
        lambda x, y, r: (torch._int_mm(x, y), A._weight_int8pack_mm(r, y, SCALES[0].repeat(16))),
        [
            torch.arange(17 * 16, dtype=torch.int8).view(17, 16),
            torch.arange(256).to(torch.int8).view(16, 16),
            numbers(3, 16),
        ],
    ),
    "rounded as if quantized": (
        lambda x, on: (
            torch.fake_quantize_per_tensor_affine(x, 0.1, 3, -128, 127),
            torch.fake_quantize_per_tensor_affine(x, SCALES[1], POINTS[1], 0, 255),
            *A._fake_quantize_per_tensor_affine_cachemask_tensor_qparams(x, SCALES[1], POINTS[1], on, 0, 255),
            torch.fake_quantize_per_channel_affine(x, SCALES, POINTS.int(), 1, -128, 127),
            A.fake_quantize_per_tensor_affine_cachemask(x, 0.1, 3, -12, 12)[1],
            *A.fake_quantize_per_channel_affine_cachemask(x, SCALES, POINTS.int(), 1, -12, 12),
        ),
        [numbers(4, 3) * 9, torch.tensor([0])],
    ),
}
