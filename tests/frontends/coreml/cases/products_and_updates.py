"""Cases of updates and of products of matrices."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import torch
from coremltools.converters.mil.mil import Builder
from tests.frontends.coreml.cases.entering import W, X, by_torch, case, f, n

F = torch.nn.functional


def scattered(mode: str, axis: int) -> Callable[..., Any]:
    """Returns the formula of `scatter`: slices along an axis, one after another."""
    combined: dict[str, Callable[[Any, Any], Any]] = {
        "update": lambda _, u: u,
        "add": np.add,
        "sub": np.subtract,
        "mul": np.multiply,
        "div": np.divide,
        "max": np.maximum,
        "min": np.minimum,
    }
    how = combined[mode]

    def formula(x: Any, indices: Any, updates: Any) -> Any:
        made, moved = np.moveaxis(x.copy(), axis, 0), np.moveaxis(updates, axis, 0)
        for k, i in enumerate(indices):
            made[i] = how(made[i], moved[k])
        return np.moveaxis(made, 0, axis)

    return formula


for _mode in ("add", "sub", "mul", "div", "max", "min", "update"):
    case(
        f"scatter.{_mode}",
        lambda a, b, c, m=_mode: Builder.scatter(data=a, indices=b, updates=c, axis=1, mode=m),
        f(2, 5, 3),
        [3, 0, 1] if _mode in ("update", "div") else [3, 0, 3],
        f(2, 3, 3),
        wanted=scattered(_mode, 1),
    )


def along(x: Any, i: Any, v: Any) -> Any:
    made = x.copy()
    for at in np.ndindex(*i.shape):
        made[at[0], i[at], at[2]] += v[at]
    return made


def at_tuples(x: Any, i: Any, v: Any) -> Any:
    made = x.copy()
    np.add.at(made, tuple(i.T), v)
    return made


case(
    "scatter_along_axis",
    lambda a, b, c: Builder.scatter_along_axis(data=a, indices=b, updates=c, axis=1, mode="add"),
    f(2, 5, 3),
    n(2, 4, 3, most=5),
    f(2, 4, 3),
    wanted=along,
)
case(
    "scatter_nd",
    lambda a, b, c: Builder.scatter_nd(data=a, indices=b, updates=c, mode="add"),
    f(3, 4, 2),
    [[2, 3], [0, 1], [2, 3]],
    f(3, 2),
    wanted=at_tuples,
)

case("linear", lambda a: Builder.linear(x=a, weight=W, bias=W[:, 0]), X)
case("linear.plain", lambda a: Builder.linear(x=a, weight=W), X)
case("matmul", lambda a, b: Builder.matmul(x=a, y=b), X, f(4, 5))
case("matmul.turned", lambda a, b: Builder.matmul(x=a, y=b, transpose_x=True, transpose_y=True), f(2, 4, 3), f(2, 5, 4))
case("einsum", lambda a, b: Builder.einsum(values=(a, b), equation="nchw,nwhu->nchu"), f(2, 3, 4, 5), f(2, 5, 4, 6))
Q, K, V = f(2, 3, 4), f(2, 5, 4), f(2, 5, 6)
ATTENTION = F.scaled_dot_product_attention
case(
    "scaled_dot_product_attention",
    lambda a, b, c: Builder.scaled_dot_product_attention(query=a, key=b, value=c),
    Q,
    K,
    V,
    wanted=by_torch(ATTENTION),
    version=18,
)
case(
    "scaled_dot_product_attention.mask",
    lambda a, b, c, d: Builder.scaled_dot_product_attention(query=a, key=b, value=c, attn_mask=d),
    Q,
    K,
    V,
    f(2, 3, 5),
    wanted=by_torch(ATTENTION),
    version=18,
)
case(
    "scaled_dot_product_attention.kept",
    lambda a, b, c, d: Builder.scaled_dot_product_attention(
        query=a, key=b, value=c, attn_mask=Builder.greater(x=d, y=-0.5)
    ),
    Q,
    K,
    V,
    np.abs(f(2, 3, 5)) - 0.7,
    wanted=by_torch(lambda q, k, v, m: ATTENTION(q, k, v, m > -0.5)),
    version=18,
)
