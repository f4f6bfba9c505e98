"""Cases of convolutions, pools and normalisations."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import torch
from coremltools.converters.mil.mil import Builder
from tests.frontends.coreml.cases.entering import BIAS, IMAGE, KERNEL, X, by_torch, case, f, u

F = torch.nn.functional
case(
    "conv",
    lambda a: Builder.conv(
        x=a, weight=KERNEL, bias=BIAS, strides=[2, 1], pad_type="custom", pad=[1, 0, 1, 2], dilations=[1, 2], groups=2
    ),
    IMAGE,
    wanted=by_torch(
        lambda x: F.conv2d(F.pad(x, (1, 2, 1, 0)), torch.tensor(KERNEL), torch.tensor(BIAS), (2, 1), 0, (1, 2), 2)
    ),
)
LINE = f(5, 4, 3)
case(
    "conv.line",
    lambda a: Builder.conv(x=a, weight=LINE, strides=[2]),
    f(2, 4, 8),
    wanted=by_torch(lambda x: F.conv1d(x, torch.tensor(LINE), stride=2)),
)
CUBE = f(3, 2, 2, 2, 2)
case(
    "conv.cube",
    lambda a: Builder.conv(x=a, weight=CUBE, pad_type="same"),
    f(1, 2, 3, 4, 3),
    wanted=by_torch(lambda x: F.conv3d(F.pad(x, (0, 1, 0, 1, 0, 1)), torch.tensor(CUBE))),
)
case(
    "conv.same_lower",
    lambda a: Builder.conv(x=a, weight=KERNEL, groups=2, pad_type="same_lower"),
    IMAGE,
    version=16,
    wanted=by_torch(lambda x: F.conv2d(F.pad(x, (1, 0, 1, 1)), torch.tensor(KERNEL), groups=2)),
)
case(
    "conv.computed",
    lambda a, b: Builder.conv(x=a, weight=b),
    f(1, 2, 5, 5),
    f(3, 2, 2, 2),
    version=17,
    wanted=by_torch(F.conv2d),
)
BACK = f(4, 3, 3, 2)
case(
    "conv_transpose",
    lambda a: Builder.conv_transpose(
        x=a, weight=BACK, bias=BIAS, strides=[2, 3], groups=2, pad_type="custom", pad=[1, 1, 0, 0], dilations=[2, 1]
    ),
    f(2, 4, 3, 4),
    wanted=by_torch(
        lambda x: F.conv_transpose2d(x, torch.tensor(BACK), torch.tensor(BIAS), (2, 3), (1, 0), 0, 2, (2, 1))
    ),
)
case(
    "conv_transpose.same",
    lambda a: Builder.conv_transpose(x=a, weight=BACK, strides=[2, 2], pad_type="same"),
    f(2, 4, 3, 4),
    wanted=by_torch(lambda x: F.conv_transpose2d(x, torch.tensor(BACK), stride=2)[..., :6, :8]),
)
case(
    "conv_transpose.shape",
    lambda a: Builder.conv_transpose(
        x=a, weight=BACK, strides=[2, 2], pad_type="custom", pad=[1, 1, 0, 0], output_shape=[2, 3, 6, 8]
    ),
    f(2, 4, 3, 4),
    wanted=by_torch(
        lambda x: F.conv_transpose2d(x, torch.tensor(BACK), stride=2, padding=(1, 0), output_padding=(1, 0))
    ),
)
case(
    "conv_transpose.line",
    lambda a: Builder.conv_transpose(x=a, weight=LINE, strides=[2]),
    f(2, 5, 4),
    wanted=by_torch(lambda x: F.conv_transpose1d(x, torch.tensor(LINE), stride=2)),
)
POOLED = f(2, 3, 7, 8)
case(
    "max_pool",
    lambda a: Builder.max_pool(x=a, kernel_sizes=[3, 2], strides=[2, 2], pad_type="custom", pad=[1, 1, 0, 1]),
    POOLED,
    wanted=by_torch(lambda x: F.max_pool2d(F.pad(x, (0, 1, 1, 1), value=-math.inf), (3, 2), 2)),
)
case(
    "max_pool.ceil",
    lambda a: Builder.max_pool(x=a, kernel_sizes=[2, 3], strides=[2, 2], pad_type="valid", ceil_mode=True),
    POOLED,
    wanted=by_torch(lambda x: F.max_pool2d(x, (2, 3), 2, ceil_mode=True)),
)
case(
    "max_pool.line",
    lambda a: Builder.max_pool(x=a, kernel_sizes=[3], strides=[2], pad_type="same"),
    f(2, 3, 7),
    wanted=by_torch(lambda x: F.max_pool1d(F.pad(x, (1, 1), value=-math.inf), 3, 2)),
)
for _excluded in (False, True):
    case(
        f"avg_pool.{_excluded}",
        lambda a, e=_excluded: Builder.avg_pool(
            x=a,
            kernel_sizes=[3, 2],
            strides=[2, 2],
            pad_type="custom",
            pad=[1, 1, 1, 1],
            exclude_padding_from_average=e,
        ),
        POOLED,
        wanted=by_torch(lambda x, e=_excluded: F.avg_pool2d(x, (3, 2), 2, 1, count_include_pad=not e)),
    )
    case(
        f"avg_pool.ceil.{_excluded}",
        lambda a, e=_excluded: Builder.avg_pool(
            x=a,
            kernel_sizes=[2, 3],
            strides=[2, 2],
            pad_type="custom",
            pad=[1, 1, 1, 1],
            exclude_padding_from_average=e,
            ceil_mode=True,
        ),
        POOLED,
        wanted=by_torch(lambda x, e=_excluded: F.avg_pool2d(x, (2, 3), 2, 1, True, not e)),
    )
case(
    "avg_pool.cube",
    lambda a: Builder.avg_pool(x=a, kernel_sizes=[2, 2, 2], strides=[1, 2, 1], pad_type="valid"),
    f(1, 2, 3, 4, 3),
    wanted=by_torch(lambda x: F.avg_pool3d(x, 2, (1, 2, 1))),
)
case(
    "l2_pool",
    lambda a: Builder.l2_pool(x=a, kernel_sizes=[2, 2], strides=[2, 2], pad_type="valid"),
    POOLED,
    wanted=by_torch(lambda x: F.lp_pool2d(x, 2, 2, 2)),
)

NORMS = {"mean": f(3), "variance": u(3), "gamma": f(3), "beta": f(3)}
LINES = {k: v.reshape(1, 3, 1) for k, v in NORMS.items()}


def normal(x: Any, axes: tuple[int, ...], epsilon: float) -> Any:
    return (x - x.mean(axes, keepdims=True)) / np.sqrt(x.var(axes, keepdims=True) + epsilon)


case(
    "batch_norm",
    lambda a: Builder.batch_norm(x=a, **NORMS, epsilon=1e-3),
    X,
    wanted=lambda x: (x - LINES["mean"]) / np.sqrt(LINES["variance"] + 1e-3) * LINES["gamma"] + LINES["beta"],
)
case(
    "batch_norm.plain",
    lambda a: Builder.batch_norm(x=a, mean=NORMS["mean"], variance=NORMS["variance"]),
    f(2, 3, 4, 5),
    wanted=lambda x: (x - LINES["mean"][..., None]) / np.sqrt(LINES["variance"][..., None] + 1e-5),
)
case(
    "instance_norm",
    lambda a: Builder.instance_norm(x=a, gamma=NORMS["gamma"], beta=NORMS["beta"], epsilon=1e-3),
    X,
    wanted=lambda x: normal(x, (2,), 1e-3) * LINES["gamma"] + LINES["beta"],
)
case(
    "instance_norm.plain", lambda a: Builder.instance_norm(x=a), f(2, 3, 4, 5), wanted=lambda x: normal(x, (2, 3), 1e-5)
)
SCALE = f(3, 4)
case(
    "layer_norm",
    lambda a: Builder.layer_norm(x=a, axes=[1, -1], gamma=SCALE, beta=SCALE * 2, epsilon=1e-3),
    X,
    wanted=lambda x: normal(x, (1, 2), 1e-3) * SCALE + 2 * SCALE,
)
case(
    "layer_norm.inner",
    lambda a: Builder.layer_norm(x=a, axes=[1], gamma=NORMS["gamma"], beta=NORMS["beta"]),
    X,
    wanted=lambda x: normal(x, (1,), 1e-5) * LINES["gamma"] + LINES["beta"],
)
case(
    "layer_norm.all", lambda a: Builder.layer_norm(x=a, axes=[0, 1, 2]), X, wanted=lambda x: normal(x, (0, 1, 2), 1e-5)
)
case(
    "l2_norm",
    lambda a: Builder.l2_norm(x=a, epsilon=0.1),
    f(2, 3, 4, 2),
    wanted=lambda x: x / np.sqrt((x * x).sum((1, 2, 3), keepdims=True) + 0.1),
)
case("l2_norm.default", lambda a: Builder.l2_norm(x=a), X, wanted=lambda x: x / np.sqrt((x * x).sum() + 1e-6))
case(
    "local_response_norm",
    lambda a: Builder.local_response_norm(x=a, size=3, alpha=0.2, beta=0.6, k=1.5),
    f(2, 6, 3, 2),
    wanted=by_torch(lambda x: F.local_response_norm(x, 3, 0.2, 0.6, 1.5)),
)
