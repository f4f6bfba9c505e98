"""Cases of layers of neural networks on images."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

import numpy as np
import torch
from tests.frontends.coreml.cases.entering import BIAS, IMAGE, KERNEL, by_torch, f, u
from tests.frontends.coreml.cases.entering_layers import layer
from tests.frontends.coreml.cases.resampling import ends, halves, resampled

F = torch.nn.functional
CONVOLUTION: Final[dict[str, Any]] = {
    "W": KERNEL.transpose(2, 3, 1, 0),
    "height": 3,
    "width": 2,
    "groups": 2,
    "kernel_channels": 2,
}
layer(
    "convolution",
    "convolution",
    IMAGE,
    wanted=by_torch(
        lambda x: F.conv2d(F.pad(x, (1, 2, 1, 0)), torch.tensor(KERNEL), torch.tensor(BIAS), (2, 1), 0, (1, 2), 2)
    ),
    **CONVOLUTION,
    output_channels=6,
    stride_height=2,
    stride_width=1,
    border_mode="valid",
    b=BIAS,
    has_bias=True,
    dilation_factors=[1, 2],
    padding_top=1,
    padding_left=1,
    padding_right=2,
)
for _mode, _pads in {"BOTTOM_RIGHT_HEAVY": (0, 1, 1, 1), "TOP_LEFT_HEAVY": (1, 0, 1, 1)}.items():
    layer(
        f"convolution.{_mode}",
        "convolution",
        IMAGE,
        wanted=by_torch(lambda x, p=_pads: F.conv2d(F.pad(x, p), torch.tensor(KERNEL), groups=2)),
        **CONVOLUTION,
        output_channels=6,
        stride_height=1,
        stride_width=1,
        border_mode="same",
        b=None,
        has_bias=False,
        same_padding_asymmetry_mode=_mode,
    )
BACK = f(4, 3, 3, 2)
TRANSPOSED: Final[dict[str, Any]] = {
    **CONVOLUTION,
    "W": BACK.transpose(2, 3, 0, 1),
    "kernel_channels": 4,
    "output_channels": 6,
    "stride_height": 2,
    "stride_width": 3,
    "is_deconv": True,
}
layer(
    "deconvolution",
    "convolution",
    f(1, 4, 3, 4),
    wanted=by_torch(
        lambda x: F.conv_transpose2d(x, torch.tensor(BACK), torch.tensor(BIAS), (2, 3), groups=2)[..., 1:-1, :]
    ),
    **TRANSPOSED,
    border_mode="valid",
    b=BIAS,
    has_bias=True,
    padding_top=1,
    padding_bottom=1,
)
layer(
    "deconvolution.shape",
    "convolution",
    f(1, 4, 3, 4),
    wanted=by_torch(lambda x: F.conv_transpose2d(x, torch.tensor(BACK), stride=(2, 3), groups=2)[..., :6, :]),
    **TRANSPOSED,
    border_mode="same",
    b=None,
    has_bias=False,
    output_shape=(6, 11),
)
POOLS: dict[str, Callable[..., Any]] = {
    "MAX": lambda x: F.max_pool2d(F.pad(x, (0, 1, 1, 0), value=-np.inf), (3, 2), 2),
    "L2": lambda x: F.lp_pool2d(F.pad(x, (0, 1, 1, 0)), 2, (3, 2), 2),
    "AVERAGE": lambda x: F.avg_pool2d(F.pad(x, (0, 1, 1, 0)), (3, 2), 2),
}
for _name, _function in POOLS.items():
    layer(
        f"pooling.{_name}",
        "pooling",
        f(1, 2, 6, 7),
        wanted=by_torch(_function),
        height=3,
        width=2,
        stride_height=2,
        stride_width=2,
        layer_type=_name,
        padding_type="VALID",
        exclude_pad_area=False,
        padding_top=1,
        padding_right=1,
    )
    layer(
        f"pooling.{_name}.global",
        "pooling",
        f(1, 2, 6, 7),
        wanted=by_torch(lambda x, g=_name: _whole(x, g)),
        height=0,
        width=0,
        stride_height=1,
        stride_width=1,
        layer_type=_name,
        padding_type="VALID",
        is_global=True,
    )


def _whole(x: Any, kind: str) -> Any:
    """Returns a pool of whole images."""
    if kind == "MAX":
        return x.amax((2, 3), keepdim=True)
    return x.mean((2, 3), keepdim=True) if kind == "AVERAGE" else (x * x).sum((2, 3), keepdim=True).sqrt()


for _excluded in (False, True):
    layer(
        f"pooling.last.{_excluded}",
        "pooling",
        f(1, 2, 6, 7),
        wanted=by_torch(lambda x, e=_excluded: F.avg_pool2d(x, 3, 2, 1, True, not e)),
        height=3,
        width=3,
        stride_height=2,
        stride_width=2,
        layer_type="AVERAGE",
        padding_type="INCLUDE_LAST_PIXEL",
        exclude_pad_area=_excluded,
        padding_top=1,
        padding_bottom=1,
        padding_left=1,
        padding_right=1,
    )
SMALL = f(1, 2, 3, 4)
FACTORS: Final[dict[str, Any]] = {"scaling_factor_h": 2, "scaling_factor_w": 3}
layer("upsample", "upsample", SMALL, wanted=lambda x: x.repeat(2, 2).repeat(3, 3), **FACTORS)
for _mode, _at in {
    "DEFAULT": lambda o, w: np.arange(w) * (o / w),
    "ALIGN_CORNERS_TRUE": ends,
    "ALIGN_CORNERS_FALSE": halves,
}.items():
    layer(
        f"upsample.{_mode}",
        "upsample",
        SMALL,
        wanted=resampled(_at, (6, 12)),
        **FACTORS,
        mode="BILINEAR",
        linear_upsample_mode=_mode,
    )
layer(
    "upsample.half",
    "upsample",
    SMALL,
    wanted=resampled(halves, (4, 6)),
    scaling_factor_h=1.5,
    scaling_factor_w=1.5,
    mode="BILINEAR",
    linear_upsample_mode="ALIGN_CORNERS_FALSE",
)


def _padded(mode: str) -> Any:
    return lambda x: np.pad(x, ((0, 0), (0, 0), (2, 1), (1, 2)), mode)  # type: ignore[call-overload]


for _type, _mode in {"constant": "constant", "reflection": "reflect", "replication": "edge"}.items():
    layer(
        f"padding.{_type}",
        "padding",
        SMALL,
        wanted=_padded(_mode),
        left=1,
        right=2,
        top=2,
        bottom=1,
        padding_type=_type,
    )
STATISTICS: Final[dict[str, Any]] = {
    k: f(2) if k in ("gamma", "beta", "mean") else u(2) for k in ("gamma", "beta", "mean", "variance")
}
HELD = {k: torch.tensor(v) for k, v in STATISTICS.items()}
layer(
    "batchnorm",
    "batchnorm",
    SMALL,
    wanted=by_torch(lambda x: F.batch_norm(x, HELD["mean"], HELD["variance"], HELD["gamma"], HELD["beta"], eps=1e-3)),
    **STATISTICS,
    channels=2,
    epsilon=1e-3,
)
layer(
    "batchnorm.instance",
    "batchnorm",
    f(2, 2, 3, 4),
    wanted=by_torch(lambda x: F.instance_norm(x, weight=HELD["gamma"], bias=HELD["beta"], eps=1e-3)),
    gamma=STATISTICS["gamma"],
    beta=STATISTICS["beta"],
    channels=2,
    compute_mean_var=True,
    instance_normalization=True,
    epsilon=1e-3,
)
layer(
    "lrn",
    "lrn",
    f(1, 6, 3, 2),
    wanted=by_torch(lambda x: F.local_response_norm(x, 3, 0.2, 0.6, 1.5)),
    alpha=0.2,
    beta=0.6,
    local_size=3,
    k=1.5,
)
layer(
    "l2_normalize",
    "l2_normalize",
    f(2, 3, 4, 2) * 1e-3,
    wanted=lambda x: x / np.sqrt((x * x).sum((1, 2, 3), keepdims=True) + 1e-6),
    epsilon=0.0,
)
for _across in (False, True):
    layer(
        f"mvn.{_across}",
        "mvn",
        f(2, 3, 4, 2) * 1e-3,
        wanted=lambda x, a=(1, 2, 3) if _across else (2, 3): (
            (x - x.mean(a, keepdims=True)) / np.sqrt(x.var(a, keepdims=True) + 1e-6)
        ),
        across_channels=_across,
        epsilon=0.0,
    )
layer(
    "bias",
    "bias",
    f(3, 2, 2),
    wanted=lambda x: x + np.arange(3).reshape(3, 1, 1),
    b=np.arange(3.0),
    shape_bias=[3],
    images=True,
)
layer(
    "scale",
    "scale",
    f(3, 2, 2),
    wanted=lambda x: x * np.arange(4).reshape(1, 2, 2) + 0.5,
    W=np.arange(4.0).reshape(1, 2, 2),
    b=np.array(0.5),
    has_bias=True,
    shape_scale=[1, 2, 2],
    shape_bias=[1],
    images=True,
)
layer("permute", "permute", f(3, 4, 2), wanted=lambda x: x.transpose(2, 0, 1), dim=(0, 3, 1, 2), images=True)
layer(
    "reshape", "reshape", f(3, 4, 2), wanted=lambda x: x.reshape(2, 6, 2), target_shape=(2, 6, 2), mode=0, images=True
)
layer(
    "reshape.last",
    "reshape",
    f(3, 4, 2),
    wanted=lambda x: x.transpose(1, 2, 0).reshape(6, 2, 2).transpose(2, 0, 1),
    target_shape=(2, 6, 2),
    mode=1,
    images=True,
)
layer("flatten", "flatten", f(3, 4, 2), wanted=lambda x: x.reshape(24, 1, 1), mode=0, images=True)
layer(
    "flatten.last", "flatten", f(3, 4, 2), wanted=lambda x: x.transpose(1, 2, 0).reshape(24, 1, 1), mode=1, images=True
)
layer(
    "concat",
    "elementwise",
    f(3, 4, 2),
    f(2, 4, 2),
    wanted=lambda x, y: np.concatenate([x, y]),
    mode="CONCAT",
    images=True,
)
