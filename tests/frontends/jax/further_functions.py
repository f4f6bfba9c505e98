"""Functions of JAX that training and sampling lower to, and networks of forms of their own, with arguments to try them with."""

from __future__ import annotations

from typing import Any, Final

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from tests.frontends.jax.functions import IMAGES, KERNEL, NHWC, Case, conv, dense, norm, parameters, random

X: Final = random(4, 6)
FORWARDS: Final = np.array([0, 2, 1, 1], np.int32)


def loss(w: Any, x: Any) -> Any:
    """The cross entropy of a network of two layers."""
    logits = jnp.tanh(x @ w["in"]) @ w["out"]
    return -jnp.mean(jnp.take_along_axis(jax.nn.log_softmax(logits), FORWARDS[:, None], 1))


WEIGHTS: Final = {"in": random(6, 8) / 3, "out": random(8, 3) / 3}


def trained(w: Any, x: Any) -> Any:
    return jax.tree.map(lambda a, g: a - 0.1 * g, w, jax.grad(loss)(w, x))


def of_channels(k: Any, x: Any) -> Any:
    return (conv(x, k, (1, 1), "SAME", feature_group_count=3) ** 2).sum()


def drawn(seed: Any) -> Any:
    key = jax.random.key(seed)
    return (
        jax.random.truncated_normal(key, -1, 1, (4,)),
        jax.random.categorical(key, jnp.zeros((4, 7))),
        jax.random.choice(key, 10, (3,)),
        jax.random.normal(jax.random.fold_in(key, 7), (3,)),
    )


FUNCTIONS: Final[dict[str, Case]] = {
    "a step of training": (lambda a, b, x: trained({"in": a, "out": b}, x), [WEIGHTS["in"], WEIGHTS["out"], X]),
    "gradient of a convolution": (jax.grad(lambda k, x: (conv(x, k, (2, 2), "SAME") ** 2).sum()), [KERNEL, IMAGES]),
    "gradient of a convolution of channels": (jax.grad(of_channels), [random(3, 3, 1, 6), IMAGES]),
    "parts of a batch": (
        lambda x, k: lax.conv_general_dilated(x, k, (1, 1), "SAME", dimension_numbers=NHWC, batch_group_count=2),
        [IMAGES, KERNEL],
    ),
    "gradient of a scan": (
        jax.grad(lambda w, x: lax.scan(lambda h, v: (jnp.tanh(h @ w + v), h), jnp.zeros(6), x)[0].sum()),
        [random(6, 6) / 3, random(20, 6)],
    ),
    "second derivatives": (jax.hessian(lambda v: (jnp.sin(v) * v**2).sum()), [X[0]]),
    "choices": (lambda x: (jnp.select([x < -1, x < 1], [x * 2, x * 3], x), jnp.argmax(x > 0, 1)), [X]),
    "functions of elements": (lambda x: (x.at[1].apply(jnp.sin), x.at[:, 2].power(2)), [X]),
    "about the largest": (lambda x: (*lax.approx_max_k(x, 2), *lax.approx_min_k(x, 3, reduction_dimension=0)), [X]),
    "a branch for each": (jax.vmap(lambda a: lax.cond(a.sum() > 0, lambda v: v * 2, lambda v: v - 1, a)), [X]),
    "a loop for each": (
        jax.vmap(lambda a: lax.while_loop(lambda v: jnp.abs(v).sum() < 50, lambda v: v * 1.5 + 1, a)),
        [X],
    ),
    "segments": (
        lambda x, i: (jax.ops.segment_sum(x, i, 3), jax.ops.segment_max(x, i, 3)),
        [X, np.array([0, 0, 2, 1], np.int32)],
    ),
    "a composite": (lax.composite(lambda v: v * 2 + 1, name="mine.line"), [X]),
    "samples": (drawn, [np.array(3, np.int32)]),
    "Bessel functions": (lambda x: (lax.bessel_i0e(x * 9), lax.bessel_i1e(x * 9)), [X]),
    "neighbours": (
        lax.nextafter,
        [np.array([0, 1, -1, 2, 5, np.inf, 0], np.float32), np.array([1, 2, 2, -3, 5, 0, -1], np.float32)],
    ),
}


def mixer(x: Any) -> Any:
    """An MLP-Mixer over patches of an image (Tolstikhin et al., 2021)."""
    batch = x.shape[0]
    x = x.reshape(batch, 4, 4, 4, 4, 3).transpose(0, 1, 3, 2, 4, 5).reshape(batch, 16, 48)
    x = dense(x, parameters(48, 24))
    for _ in range(2):
        x = x + dense(jax.nn.gelu(dense(norm(x).swapaxes(1, 2), parameters(16, 12))), parameters(12, 16)).swapaxes(1, 2)
        x = x + dense(jax.nn.gelu(dense(norm(x), parameters(24, 48))), parameters(48, 24))
    return dense(x.mean(1), parameters(24, 5))


def convnext(x: Any) -> Any:
    """Blocks of a convolution of each channel, and two layers over channels (Liu et al., 2022)."""
    x = conv(x, parameters(2, 2, 3, 12)["kernel"], (2, 2), "VALID")
    for _ in range(2):
        y = conv(x, random(5, 5, 1, 12) / 5, (1, 1), "SAME", feature_group_count=12)
        y = dense(jax.nn.silu(dense(norm(y), parameters(12, 24))), parameters(24, 12))
        x = x + y
    return dense(norm(x.mean((1, 2))), parameters(12, 4))


def state_space(x: Any) -> Any:
    """A diagonal state-space layer, as an associative scan along time (Smith et al., 2023)."""
    decay = jax.nn.sigmoid(random(16)) * jnp.ones((x.shape[0], 16))

    def joined(a: Any, b: Any) -> Any:
        return a[0] * b[0], b[0] * a[1] + b[1]

    _, states = lax.associative_scan(joined, (decay, dense(x, parameters(8, 16))))
    return dense(jax.nn.gelu(states), parameters(16, 8)) + x


def grouped_queries(x: Any) -> Any:
    """Attention whose queries share keys in groups, with rotated positions (Su et al., 2021)."""
    batch, length, width = x.shape
    q = dense(norm(x), parameters(width, 32)).reshape(batch, length, 4, 8)
    k, v = (dense(norm(x), parameters(width, 16)).reshape(batch, length, 2, 8) * s for s in (1.0, 0.5))
    angles = jnp.arange(length)[:, None] / 10 ** (jnp.arange(4) / 2)
    cos, sin = (f(angles)[None, :, None] for f in (jnp.cos, jnp.sin))

    def turned(h: Any) -> Any:
        a, b = jnp.split(h, 2, -1)
        return jnp.concatenate([a * cos - b * sin, a * sin + b * cos], -1)

    mixed = jax.nn.dot_product_attention(turned(q), turned(k), v, is_causal=True).reshape(batch, length, 32)
    return x + dense(mixed, parameters(32, width))


NETWORKS: Final[dict[str, Case]] = {
    "mixer": (mixer, [random(2, 16, 16, 3)]),
    "convnext": (convnext, [random(2, 12, 12, 3)]),
    "state_space": (state_space, [random(25, 8)]),
    "grouped_queries": (grouped_queries, [random(2, 6, 24)]),
}
