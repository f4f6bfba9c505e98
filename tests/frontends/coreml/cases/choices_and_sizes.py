"""Cases of boxes and places that are chosen, of sizes and ranges that are data, and of samples of images."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from coremltools.converters.mil.mil import Builder
from tests.frontends.coreml.cases.entering import IMAGE, X, by_torch, case, f, n

F = torch.nn.functional
GRID = np.tanh(f(2, 3, 5, 2))
SAMPLED = {"padding_value": np.float32(0), "coordinates_mode": "normalized_minus_one_to_one"}

case(
    "crop",
    lambda a: Builder.crop(x=a, crop_height=[1, 2], crop_width=[0, 3]),
    IMAGE,
    wanted=lambda x: x[:, :, 1:-2, :-3],
)
case(
    "resize",
    lambda a: Builder.resize(
        x=a, shape=np.array([0, 9, 4], np.int32), resized_dims=np.uint32(2), sampling_mode="UNALIGN_CORNERS"
    ),
    IMAGE,
    version=17,
    wanted=by_torch(lambda x: F.interpolate(x, size=(9, 4), mode="bilinear")),
)
case(
    "resize.nearest",
    lambda a: Builder.resize(
        x=a, shape=np.array([2, 4, 14, 0], np.int32), resized_dims=np.uint32(2), interpolation_mode="NEAREST_NEIGHBOR"
    ),
    IMAGE,
    version=17,
    wanted=lambda x: x.repeat(2, 2),
)
for _name, _mode, _padding, _aligned, _theirs in (
    ("resample", "bilinear", "constant", False, "zeros"),
    ("resample.aligned", "bilinear", "constant", True, "zeros"),
    ("resample.nearest", "nearest", "border", True, "border"),
    ("resample.reflected", "bilinear", "reflection", True, "reflection"),
):
    case(
        _name,
        lambda a, b, m=_mode, p=_padding, g=_aligned: Builder.resample(
            x=a, coordinates=b, sampling_mode=m, padding_mode=p, align_corners=g, **SAMPLED
        ),
        IMAGE,
        GRID * 1.3,
        wanted=by_torch(
            lambda x, g, m=_mode, p=_theirs, al=_aligned: F.grid_sample(x, g, mode=m, padding_mode=p, align_corners=al)
        ),
    )
PIXELS = np.abs(f(2, 3, 5, 2)) * 2
case(
    "resample.pixels",
    lambda a, b: Builder.resample(
        x=a,
        coordinates=b,
        sampling_mode="bilinear",
        padding_mode="constant",
        padding_value=np.float32(0),
        coordinates_mode="unnormalized",
        align_corners=True,
    ),
    IMAGE,
    PIXELS,
    wanted=by_torch(
        lambda x, g: F.grid_sample(x, g / torch.tensor([2.5, 3.0]) - 1, align_corners=True),
    ),
)
THETA = np.array([[0.9, 0.1, 0.1, -0.1, 0.8, 0.0]], np.float32)
case(
    "affine",
    lambda a, b: Builder.affine(
        x=a,
        transform_matrix=b,
        output_height=4,
        output_width=5,
        sampling_mode="bilinear",
        padding_mode="constant",
        align_corners=True,
        **SAMPLED,
    ),
    IMAGE,
    THETA,
    wanted=by_torch(
        lambda x, t: F.grid_sample(
            x, F.affine_grid(t.reshape(1, 2, 3).expand(2, 2, 3), [2, 4, 4, 5], align_corners=True), align_corners=True
        )
    ),
)

case(
    "fill_like",
    lambda a: Builder.fill_like(ref_tensor=a, value=np.float32(2.5)),
    X,
    version=16,
    wanted=lambda x: np.full_like(x, 2.5),
)
case("non_zero", lambda a: Builder.non_zero(x=a), n(3, 4, most=2), wanted=np.argwhere)
case(
    "reverse_sequence",
    lambda a: Builder.reverse_sequence(x=a, lengths=np.array([1, 3], np.int32), seq_axis=1, batch_axis=0),
    X,
    wanted=lambda x: np.stack([x[0], x[1, ::-1]]),
)
case("concat.numbers", lambda a: Builder.concat(values=[Builder.squeeze(x=a), Builder.squeeze(x=a)], axis=0), f(1))
case(
    "range_1d.late",
    lambda a: Builder.range_1d(start=0, end=Builder.reduce_sum(x=a), step=2),
    np.array([3, 4]),
    wanted=lambda x: np.arange(0, x.sum(), 2).astype(np.int32),
)
case(
    "pixel_unshuffle",
    lambda a: Builder.pixel_unshuffle(x=a, downscale_factor=np.uint32(2)),
    f(1, 3, 4, 6),
    version=16,
    wanted=by_torch(lambda x: F.pixel_unshuffle(x, 2)),
)
case(
    "reshape_like",
    lambda a, b, c: Builder.reshape_like(x=a, ref_tensors=[b, c], begins=[0, 1], ends=[1, 0], end_masks=[False, True]),
    f(6, 4),
    f(2, 5),
    f(7, 3, 4),
    version=16,
    wanted=lambda x, y, z: x.reshape(2, 3, 4),
)
case(
    "sliding_windows",
    lambda a: Builder.sliding_windows(x=a, axis=1, size=3, stride=2),
    f(2, 8),
    wanted=lambda x: np.stack([x[:, k : k + 3] for k in (0, 2, 4)], 1),
)

BOXES = np.array([[[2, 2, 4, 4], [2.5, 2, 4, 4], [7, 7, 2, 2], [7, 7.5, 2, 2.5]]], np.float32)
SCORES = np.array([[[0.5], [0.9], [0.2], [0.3]]], np.float32)
KEPT = [1, 3]


def suppressed(boxes: Any, scores: Any) -> list[Any]:
    """Returns the two boxes that are left, and two rows behind them."""
    rest = [(0, 0), (0, 2), (0, 0)]
    chosen = [np.pad(x[:, KEPT], [*rest[:1], (0, 2), (0, 0)]) for x in (boxes, scores)]
    return [*chosen, np.array([[*KEPT, -1, -1]], np.int32), np.array([2], np.int32)]


case(
    "non_maximum_suppression",
    lambda a, b: Builder.non_maximum_suppression(
        boxes=a, scores=b, iou_threshold=0.5, score_threshold=0.1, max_boxes=4
    ),
    BOXES,
    SCORES,
    wanted=suppressed,
)
case(
    "non_maximum_suppression.last",
    lambda a, b: Builder.non_maximum_suppression(boxes=a, scores=b, iou_threshold=0.5, max_boxes=4),
    BOXES.transpose(0, 2, 1),
    SCORES.transpose(0, 2, 1),
    version=17,
    wanted=lambda b, s: [
        v if k == 2 else v.transpose(0, 2, 1)
        for k, v in enumerate(suppressed(b.transpose(0, 2, 1), s.transpose(0, 2, 1))[:3])
    ],
)
