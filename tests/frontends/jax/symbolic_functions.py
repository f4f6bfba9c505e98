"""Functions of JAX to export for sizes that are not known: `b` and `n` of an argument [b, n, 5]."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from tests.frontends.jax.functions import random

SIZES: Final = "b, n, 5"
X: Final = random(3, 4, 5)


def attention(x: Any) -> Any:
    """Self-attention to steps before."""
    scores = jnp.where(jnp.tril(jnp.ones((x.shape[1], x.shape[1]), bool)), x @ x.transpose(0, 2, 1), -1e9)
    return jax.nn.softmax(scores) @ x


FUNCTIONS: Final[dict[str, Callable[[Any], Any]]] = {
    "shapes": lambda x: (x.reshape(-1, 5), x.reshape(x.shape[0] * x.shape[1], 5), jnp.broadcast_to(x[:1], x.shape)),
    "numbers": lambda x: (jnp.arange(x.shape[0] * 2), x.shape[0] + x[0, 0], jnp.zeros(x.shape) + x.shape[1]),
    "rows": lambda x: (x[jnp.array([0, 2])], x[-1], x[::-1], x[:, : x.shape[1] - 1], jnp.take(x, jnp.array([1, 0]), 1)),
    "places": lambda x: (
        x[:, jnp.arange(x.shape[1])[::-1]],
        jnp.take_along_axis(x, jnp.argmax(x, 1, keepdims=True), 1),
    ),
    "windows": lambda x: (
        lax.dynamic_slice(x, (1, 0, 0), (1, x.shape[1], 2)),
        lax.dynamic_update_slice(x, x[:1] * 2, (x.shape[0] - 1, 0, 0)),
    ),
    "updates": lambda x: (x.at[:, 0].set(1.0), x.at[0].add(x[1])),
    "sums": lambda x: (jnp.sum(x, 1), jnp.mean(x, 0), jnp.einsum("bij,bkj->bik", x, x)),
    "sorted": lambda x: (jnp.sort(x, 1), jax.nn.one_hot(jnp.argmax(x, -1), 5)),
    "joined": lambda x: (jnp.concatenate([x, x], 1), jnp.tile(x, (2, 1, 1)), jnp.repeat(x, 2, axis=0)),
    "scan": lambda x: lax.scan(lambda h, v: (h + v, h * 2), x[0] * 0, x),
    "convolution": lambda x: lax.conv_general_dilated(
        x, np.ones((3, 5, 2), np.float32), (1,), "SAME", dimension_numbers=("NHC", "HIO", "NHC")
    ),
    "running": lambda x: (
        jnp.cumsum(x, 2),
        lax.cumprod(x, 2, reverse=True),
        lax.reduce_window(x, -np.inf, lax.max, (1, 1, 3), (1, 1, 2), "SAME"),
    ),
    "running along a size": lambda x: (jnp.cumsum(x, 1), jnp.cumsum(x, 0), lax.cumprod(x, 1, reverse=True)),
    "scan from zeros": lambda x: lax.scan(lambda h, v: (jnp.tanh(h / 2 + v),) * 2, jnp.zeros(x.shape[1:]), x),
    "attention": attention,
}
