"""Reductions of segments, windows at places that a tensor tells, and samples of volumes."""

from __future__ import annotations

from itertools import product
from typing import Any

import torch
from tests.frontends.torch.cases.tensors import A, Case
from tests.frontends.torch.modules import numbers
from torch.nn.functional import interpolate

LENGTHS, OFFSETS = torch.tensor([2, 0, 3]), torch.tensor([0, 2, 2, 5])
RESIZES = (A._upsample_bilinear2d_aa, A._upsample_bicubic2d_aa)


def segments(x: torch.Tensor, how: str, initial: float | None) -> list[Any]:
    """The segments of five rows, by their lengths and by their offsets."""
    given: list[dict[str, Any]] = [{"lengths": LENGTHS}, {"offsets": OFFSETS}]
    return [torch.segment_reduce(x, how, axis=0, initial=initial, unsafe=True, **g) for g in given]


CASES: dict[str, Case] = {
    "segments": (
        lambda x, y: (
            *[v for how in ("sum", "mean", "prod", "max", "min") for v in segments(x, how, 2)],
            *[v for how in ("mean", "max") for v in segments(x, how, None)],
            torch.segment_reduce(y, "sum", lengths=torch.stack([LENGTHS, LENGTHS.flip(0)]), axis=1, unsafe=True),
        ),
        [numbers(5, 3), numbers(2, 5, 3, seed=1)],
    ),
    "fractional pools": (
        lambda x, u, y, w: (
            A.fractional_max_pool2d(x, [2, 3], [5, 4], u),
            A.fractional_max_pool2d(x, [2, 3], [1, 4], u),
            A.fractional_max_pool3d(y, [2, 3, 2], [3, 2, 2], w),
        ),
        [
            numbers(2, 3, 9, 8),
            numbers(2, 3, 2, seed=1).abs() % 1,
            numbers(2, 6, 7, 5, seed=2),
            torch.full((1, 2, 3), 0.4),
        ],
    ),
    "antialiased": (
        lambda x: tuple(
            [resize(x, size, corners) for resize, size, corners in product(RESIZES, ([3, 4], [9, 2]), (False, True))]
        ),
        [numbers(1, 2, 6, 7)],
    ),
    "interpolations": (
        lambda x, y, z: (
            *[interpolate(x, size=n, mode=m) for n, m in product((3, 10, 15), ("nearest", "nearest-exact", "linear"))],
            *[interpolate(y, (9, 14), mode=m) for m in ("nearest", "nearest-exact", "bilinear")],
            *[interpolate(y, scale_factor=f, mode="nearest") for f in ((2.3, 1.1), (2, 3), (0.7, 1.5))],
            *[
                interpolate(y, scale_factor=f, mode="bilinear", align_corners=a)
                for f, a in product((2, 1.1), (False, True))
            ],
            *[interpolate(z, scale_factor=(2.3, 1.1, 0.5), mode=m) for m in ("nearest", "nearest-exact", "trilinear")],
            A._upsample_nearest_exact2d(y, [7, 9], 2.1, None),
            A.upsample_bilinear2d(y, [7, 9], True),
            *[f(x, [7]) for f in (A.upsample_nearest1d, A._upsample_nearest_exact1d)],
            *[f(z, [7, 3, 4]) for f in (A.upsample_nearest3d, A._upsample_nearest_exact3d)],
            A.upsample_nearest2d(y, [7, 9]),
            A.upsample_linear1d(x, [7], False),
            A.upsample_trilinear3d(z, [7, 3, 4], True),
            *[interpolate(y, (9, n), mode="bicubic", align_corners=a) for n, a in product((7, 4), (False, True))],
            *[interpolate(y, scale_factor=f, mode="bicubic") for f in ((2.3, 1.1), 1.3, (0.5, 2))],
            A.upsample_bicubic2d(y, [1, 9], False, None, 1.2),
        ),
        [numbers(2, 2, 5), numbers(1, 2, 3, 7, seed=1), numbers(1, 2, 3, 4, 4, seed=2)],
    ),
    "samples of volumes": (
        lambda x, grid: tuple(
            [A.grid_sampler_3d(x, grid, *how) for how in product((0, 1), (0, 1, 2), (False, True))]
            + [A.grid_sampler_3d(x[:, :, :1], grid, 0, 2, True)]
        ),
        [numbers(2, 2, 3, 4, 5), numbers(2, 2, 3, 2, 3, seed=1)],
    ),
}
