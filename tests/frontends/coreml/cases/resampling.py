"""Cases of images resampled, against their places as the specification has them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import torch
from coremltools.converters.mil.mil import Builder
from tests.frontends.coreml.cases.entering import by_torch, case, f

F = torch.nn.functional


def resampled(at: Callable[[int, int], Any], sizes: tuple[int, int]) -> Callable[..., Any]:
    """Returns the formula of linear resampling at places of *at(input size, output size)*."""

    def formula(x: Any) -> Any:
        for d, size in zip((-2, -1), sizes, strict=True):
            old = x.shape[d]
            places = np.clip(at(old, size), 0, old - 1)
            low = np.floor(places).astype(int)
            part = (places - low).reshape([-1 if k == x.ndim + d else 1 for k in range(x.ndim)])
            x = np.take(x, low, d) * (1 - part) + np.take(x, np.minimum(low + 1, old - 1), d) * part
        return x.astype(np.float32)

    return formula


def ends(old: int, new: int) -> Any:
    return np.arange(new) * ((old - 1) / max(new - 1, 1))


def halves(old: int, new: int) -> Any:
    return (np.arange(new) + 0.5) * (old / new) - 0.5


def middle(old: int, new: int) -> Any:
    return ends(old, new) if new > 1 else np.array([(old - 1) / 2])


def offset(old: int, new: int) -> Any:
    return (np.arange(new) + 0.5) * (max(1, old - 1) / new)


SMALL = f(1, 2, 3, 4)
case(
    "upsample_nearest_neighbor",
    lambda a: Builder.upsample_nearest_neighbor(x=a, scale_factor_height=2, scale_factor_width=3),
    SMALL,
    wanted=lambda x: x.repeat(2, 2).repeat(3, 3),
)
case(
    "upsample_nearest_neighbor.half",
    lambda a: Builder.upsample_nearest_neighbor(x=a, scale_factor_height=1.5, scale_factor_width=1.5),
    SMALL,
    wanted=by_torch(lambda x: F.interpolate(x, size=(4, 6))),
)
case(
    "resize_nearest_neighbor",
    lambda a: Builder.resize_nearest_neighbor(x=a, target_size_height=5, target_size_width=3),
    SMALL,
    wanted=by_torch(lambda x: F.interpolate(x, size=(5, 3))),
)
case(
    "upsample_bilinear",
    lambda a: Builder.upsample_bilinear(x=a, scale_factor_height=2, scale_factor_width=3),
    SMALL,
    wanted=resampled(ends, (6, 12)),
)
case(
    "upsample_bilinear.halves",
    lambda a: Builder.upsample_bilinear(x=a, scale_factor_height=2.0, scale_factor_width=1.5, align_corners=False),
    SMALL,
    wanted=resampled(halves, (6, 6)),
)
case(
    "upsample_bilinear.starts",
    lambda a: Builder.upsample_bilinear(
        x=a, scale_factor_height=2, scale_factor_width=2, align_corners=False, half_pixel_centers=False
    ),
    SMALL,
    wanted=resampled(lambda o, w: np.arange(w) * (o / w), (6, 8)),
    version=16,
)
for _mode, _at in {
    "STRICT_ALIGN_CORNERS": ends,
    "ALIGN_CORNERS": middle,
    "DEFAULT": lambda o, w: np.arange(w) * (o / w),
    "OFFSET_CORNERS": offset,
    "UNALIGN_CORNERS": halves,
}.items():
    for _sizes in ((5, 3), (1, 6), (3, 4)):
        case(
            f"resize_bilinear.{_mode}.{_sizes[0]}",
            lambda a, m=_mode, s=_sizes: Builder.resize_bilinear(
                x=a, target_size_height=s[0], target_size_width=s[1], sampling_mode=m
            ),
            SMALL,
            wanted=resampled(_at, _sizes),
        )
