"""Cases of layers of neural networks on each element, of products, shapes and reductions."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import torch
from tests.frontends.coreml.cases.entering import X, by_torch, f, u
from tests.frontends.coreml.cases.entering_layers import layer

F = torch.nn.functional
for _name in ("ceil", "floor", "sign", "round", "sin", "cos", "tan", "sinh", "cosh", "tanh"):
    layer(_name, _name, X, wanted=getattr(np, _name))
for _name in ("asin", "acos", "atan", "asinh", "atanh"):
    layer(_name, _name, u(2, 3), wanted=getattr(np, f"arc{_name[1:]}"))
layer("acosh", "acosh", u(2, 3) + 1, wanted=np.arccosh)
layer("erf", "erf", X, wanted=by_torch(torch.erf))
layer("copy", "copy", X, wanted=lambda x: x)
layer("gelu", "gelu", X, wanted=by_torch(F.gelu))
layer("gelu.tanh", "gelu", X, wanted=by_torch(lambda x: F.gelu(x, approximate="tanh")), mode="TANH_APPROXIMATION")
layer("gelu.sigmoid", "gelu", X, wanted=by_torch(lambda x: x * torch.sigmoid(1.702 * x)), mode="SIGMOID_APPROXIMATION")
layer("clip", "clip", X, wanted=lambda x: np.clip(x, -0.5, 0.7), min_value=-0.5, max_value=0.7)
layer(
    "clamped_relu",
    "clamped_relu",
    X,
    wanted=lambda x: np.minimum(np.where(x > 0, x, 0.1 * x), 0.6),
    alpha=0.1,
    beta=0.6,
)
for _name, _ufunc in {
    "add": np.add,
    "subtract": np.subtract,
    "multiply": np.multiply,
    "divide": np.divide,
    "max": np.maximum,
    "min": np.minimum,
}.items():
    layer(f"{_name}_broadcastable", f"{_name}_broadcastable", X, u(3, 1), wanted=_ufunc)
layer("pow_broadcastable", "pow_broadcastable", u(2, 3), u(3), wanted=np.power)
for _name, _sum in {"ADD": np.add, "MULTIPLY": np.multiply, "MAX": np.maximum, "MIN": np.minimum}.items():
    layer(f"elementwise.{_name}", "elementwise", f(2, 4, 4), f(2, 4, 4), wanted=_sum, mode=_name, images=True)
layer("elementwise.AVE", "elementwise", X, X[::-1], wanted=lambda x, y: (x + y) / 2, mode="AVE")
layer("elementwise.number", "elementwise", X, wanted=lambda x: 2.5 * x, mode="MULTIPLY", alpha=2.5)

ACTIVATIONS: dict[str, tuple[Any, Callable[..., Any]]] = {
    "RELU": (None, lambda x: np.maximum(x, 0)),
    "LEAKYRELU": ([0.2], lambda x: np.where(x > 0, x, 0.2 * x)),
    "THRESHOLDEDRELU": (0.3, lambda x: np.where(x >= 0.3, x, 0)),
    "PRELU": (np.array([0.1, 0.2, 0.3]), lambda x: np.where(x > 0, x, np.array([[[0.1]], [[0.2]], [[0.3]]]) * x)),
    "TANH": (None, np.tanh),
    "SCALED_TANH": ([0.5, 2.0], lambda x: 0.5 * np.tanh(2 * x)),
    "SIGMOID": (None, lambda x: 1 / (1 + np.exp(-x))),
    "SIGMOID_HARD": ([0.3, 0.4], lambda x: np.clip(0.3 * x + 0.4, 0, 1)),
    "ELU": (0.7, lambda x: np.where(x > 0, x, 0.7 * np.expm1(x))),
    "SOFTSIGN": (None, lambda x: x / (1 + abs(x))),
    "SOFTPLUS": (None, lambda x: np.log1p(np.exp(x))),
    "PARAMETRICSOFTPLUS": (
        [np.array([0.5, 1, 2]), np.array([1, 2, 0.5])],
        lambda x: np.array([[[0.5]], [[1]], [[2]]]) * np.log1p(np.exp(np.array([[[1]], [[2]], [[0.5]]]) * x)),
    ),
    "LINEAR": ([2.0, 0.5], lambda x: 2 * x + 0.5),
}
for _name, (_params, _function) in ACTIVATIONS.items():
    layer(f"activation.{_name}", "activation", f(1, 3, 4, 2), wanted=_function, non_linearity=_name, params=_params)
UNARY: dict[str, Callable[..., Any]] = {
    "sqrt": np.sqrt,
    "rsqrt": lambda x: 1 / np.sqrt(x + 0.1),
    "inverse": lambda x: 1 / (x + 0.1),
    "power": lambda x: x**1.5,
    "exp": np.exp,
    "abs": abs,
    "threshold": lambda x: np.maximum(x, 1.5),
}
for _name, _function in UNARY.items():
    layer(
        f"unary.{_name}",
        "unary",
        u(2, 3),
        wanted=lambda x, g=_function: g(2 * x + 0.5),
        mode=_name,
        alpha=1.5,
        epsilon=0.1,
        shift=0.5,
        scale=2.0,
    )
layer("unary.default", "unary", u(2, 3) * 1e-5, wanted=lambda x: 1 / (x + 1e-6), mode="inverse", epsilon=0.0)
layer("unary.log", "unary", u(2, 3), wanted=np.log, mode="log", epsilon=1e-12)

layer("transpose", "transpose", X, wanted=lambda x: x.transpose(2, 0, 1), axes=(2, 0, 1))
layer("concat_nd", "concat_nd", X, X * 2, wanted=lambda x, y: np.concatenate([x, y], -1), axis=-1)
layer(
    "concat_nd.interleaved",
    "concat_nd",
    X,
    X * 2,
    wanted=lambda x, y: np.stack([x, y], 2).reshape(2, 6, 4),
    axis=1,
    interleave=True,
)
layer("softmax_nd", "softmax_nd", X, wanted=by_torch(lambda x: torch.softmax(x, 1)), axis=1)
layer("softmax", "softmax", f(1, 3, 4, 2), wanted=by_torch(lambda x: torch.softmax(x, 1)))
layer("stack", "stack", X, X * 2, wanted=lambda x, y: np.stack([x, y], 1), axis=1)
layer("split_nd", "split_nd", X, wanted=lambda x: np.split(x, 2, 2), axis=2, num_splits=2, outputs=2)
layer(
    "split_nd.sizes",
    "split_nd",
    X,
    wanted=lambda x: np.split(x, [1], 2),
    axis=2,
    num_splits=2,
    split_sizes=[1, 3],
    outputs=2,
)
layer("split", "split", f(4, 3, 2), wanted=lambda x: np.split(x, 2), outputs=2, images=True)
layer(
    "slice_static",
    "slice_static",
    X,
    wanted=lambda x: x[1, :, 3:0:-2],
    begin_ids=[1, 0, 3],
    end_ids=[2, 2, 0],
    strides=[1, 1, -2],
    begin_masks=[False, True, False],
    end_masks=[False, True, False],
    squeeze_masks=[True, False, False],
)
layer(
    "slice",
    "slice",
    f(5, 3, 4),
    wanted=lambda x: x[1:-1:2],
    axis="channel",
    start_index=1,
    end_index=-1,
    stride=2,
    images=True,
)
layer("slice.width", "slice", f(1, 5, 3, 4), wanted=lambda x: x[..., 1:3], axis="width", start_index=1, end_index=3)
layer("expand_dims", "expand_dims", X, wanted=lambda x: x[None, ..., None], axes=[0, -1])
layer("squeeze", "squeeze", f(1, 3, 1), wanted=lambda x: x[0], axes=[0])
layer("squeeze.all", "squeeze", f(1, 3, 1), wanted=lambda x: x[0, :, 0], squeeze_all=True)
layer("flatten_to_2d", "flatten_to_2d", X, wanted=lambda x: x.reshape(6, 4), axis=-1)
layer("reshape_static", "reshape_static", X, wanted=lambda x: x.reshape(4, 6), output_shape=(4, -1))
layer(
    "rank_preserving_reshape",
    "rank_preserving_reshape",
    X,
    wanted=lambda x: x.reshape(2, 12, 1),
    output_shape=(0, -1, 1),
)
layer("load_constant_nd", "load_constant_nd", X, wanted=lambda x: x + X[0], constant_value=X[0], shape=(3, 4))
layer(
    "load_constant",
    "load_constant",
    f(3, 4, 2),
    wanted=lambda x: x + 1.5,
    constant_value=np.full((3, 4, 2), 1.5),
    shape=(3, 4, 2),
    images=True,
)
for _name, _reduced in {
    "sum": np.sum,
    "prod": np.prod,
    "mean": np.mean,
    "max": np.max,
    "min": np.min,
    "l1": lambda x, a, keepdims: abs(x).sum(a, keepdims=keepdims),
    "l2": lambda x, a, keepdims: np.sqrt((x * x).sum(a, keepdims=keepdims)),
    "sumsquare": lambda x, a, keepdims: (x * x).sum(a, keepdims=keepdims),
    "logsum": lambda x, a, keepdims: np.log(x.sum(a, keepdims=keepdims)),
    "logsumexp": lambda x, a, keepdims: np.log(np.exp(x).sum(a, keepdims=keepdims)),
}.items():
    for _kept in (False, True):
        layer(
            f"reduce_{_name}.{_kept}",
            f"reduce_{_name}",
            u(2, 3, 4),
            wanted=lambda x, g=_reduced, k=_kept: g(x, (0, 2), keepdims=k),
            axes=[0, -1],
            keepdims=_kept,
            reduce_all=False,
        )
    layer(
        f"reduce_{_name}.all",
        f"reduce_{_name}",
        u(2, 3),
        wanted=lambda x, g=_reduced: g(x, (0, 1), keepdims=False),
        axes=None,
        keepdims=False,
        reduce_all=True,
    )
for _name, _reduced in {
    "sum": np.sum,
    "avg": np.mean,
    "prod": np.prod,
    "logsum": lambda x, a, keepdims: np.log(x + 1e-6).sum(a, keepdims=keepdims),
    "sumsquare": lambda x, a, keepdims: (x * x).sum(a, keepdims=keepdims),
    "L1": lambda x, a, keepdims: abs(x).sum(a, keepdims=keepdims),
    "L2": lambda x, a, keepdims: np.sqrt((x * x).sum(a, keepdims=keepdims)),
    "max": np.max,
    "min": np.min,
    "argmax": lambda x, a, keepdims: x.argmax(a, keepdims=keepdims),
}.items():
    layer(
        f"reduce.{_name}",
        "reduce",
        u(1, 2, 3, 4),
        wanted=lambda x, g=_reduced: g(x, 2, keepdims=True),
        axis="H",
        mode=_name,
    )

MATRIX, VECTOR = f(4, 5), f(5)
layer(
    "batched_mat_mul",
    "batched_mat_mul",
    f(2, 4, 3),
    f(2, 5, 4),
    wanted=lambda x, y: x.swapaxes(1, 2) @ y.swapaxes(1, 2),
    transpose_a=True,
    transpose_b=True,
)
layer(
    "batched_mat_mul.weights",
    "batched_mat_mul",
    X,
    wanted=lambda x: x @ MATRIX + VECTOR,
    weight_matrix_rows=4,
    weight_matrix_columns=5,
    W=MATRIX,
    bias=VECTOR,
)
layer(
    "inner_product",
    "inner_product",
    X,
    wanted=lambda x: x @ MATRIX + VECTOR,
    W=MATRIX.T,
    b=VECTOR,
    input_channels=4,
    output_channels=5,
    has_bias=True,
)
GAMMA, BETA = f(3, 4), f(3, 4)
layer(
    "layer_normalization",
    "layer_normalization",
    X,
    wanted=by_torch(lambda x: F.layer_norm(x, (3, 4), torch.tensor(GAMMA), torch.tensor(BETA), 1e-3)),
    normalized_shape=(3, 4),
    gamma=GAMMA,
    beta=BETA,
    eps=1e-3,
)
