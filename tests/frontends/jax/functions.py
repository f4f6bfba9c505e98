"""Functions of JAX, with arguments to try them with: cases of the operations of StableHLO, and networks."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeAlias

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from jax.sharding import PartitionSpec as P

Array: TypeAlias = "np.ndarray[Any, np.dtype[Any]]"
Case: TypeAlias = tuple[Callable[..., Any], list[Array]]


def random(*shape: int) -> Array:
    return np.random.default_rng(sum(shape)).standard_normal(shape).astype(np.float32)


X = random(2, 5, 6)
PLACES = np.array([3, -1, 1], np.int32)
IMAGES, KERNEL = random(2, 9, 8, 3), random(3, 3, 3, 4)
INTS, DIVISORS = np.array([5, -7, 9, -100], np.int32), np.array([2, 3, 0, -3], np.int32)
NHWC = ("NHWC", "HWIO", "NHWC")
SEQUENCE, SQUARE = random(30, 5, 6), random(6, 6) / 3


def scanned(x: Any, w: Any, *, reverse: bool = False) -> Any:
    """A recurrence, of which each step gives a row."""

    def step(h: Any, now: Any) -> Any:
        h = jnp.tanh(now @ w + h)
        return h, h * 2

    return lax.scan(step, jnp.zeros(x.shape[1:]), x, reverse=reverse)


def conv(x: Any, k: Any, strides: Any, pads: Any, **options: Any) -> Any:
    return lax.conv_general_dilated(x, k, strides, pads, dimension_numbers=NHWC, **options)


def back_conv(x: Any, pads: str) -> Any:
    weight = jnp.arange(72.0).reshape(3, 6, 4) / 50
    return lax.conv_transpose(x, weight, (2,), pads, dimension_numbers=("NHC", "HIO", "NHC"))


def window(x: Any, first: Any, function: Any, sizes: Any, strides: Any, pads: str) -> Any:
    return lax.reduce_window(x, first, function, sizes, strides, pads)


def pooled(x: Any, size: int, step: int, pads: str) -> Any:
    return lax.reduce_window(x, -jnp.inf, lax.max, (1, size, size, 1), (1, step, step, 1), pads)


def random_bits(key: Any, shape: tuple[int, ...], algorithm: str) -> Any:
    made = [
        lax.rng_bit_generator(key, shape, d, algorithm=lax.RandomAlgorithm[algorithm]) for d in (np.uint32, np.uint8)
    ]
    return [*made, lax.rng_bit_generator(made[0][0], (5,), algorithm=lax.RandomAlgorithm[algorithm])]


def drawn(seed: Any, kind: str) -> Any:
    """Numbers of JAX's own generator (`threefry2x32`), or of XLA's (`rbg`)."""
    first, second = jax.random.split(jax.random.key(seed, impl=kind))
    numbers = jax.random.normal(first, (5, 3)), jax.random.uniform(second, (4,), jnp.bfloat16)
    return (
        *numbers,
        jax.random.randint(second, (7,), -5, 9),
        jax.random.permutation(first, 11),
        jax.random.bits(first, (3,)),
    )


def exchanged(x: Any) -> Any:
    """What devices exchange, of which there is one."""

    def step(a: Any) -> Any:
        summed, gathered = lax.psum(a, "x"), lax.all_gather(a, "x")
        sent = [lax.ppermute(a, "x", pairs) for pairs in ([(0, 0)], [])]
        return summed, gathered, lax.axis_index("x") + 5, lax.psum_scatter(a, "x", tiled=True), *sent

    mesh = jax.sharding.Mesh(np.array(jax.devices()[:1]), ("x",))
    return jax.shard_map(step, mesh=mesh, in_specs=P("x"), out_specs=P(), check_vma=False)(x)


POOLS = [(2, 2, "VALID"), (3, 2, "SAME"), (3, 1, "VALID")]
"""Windows that lie side by side, overlap, and reach beyond the image."""


KEY = np.array([3, 0xFFFFFFF0, 0xFFFFFFFE, 0xFFFFFFFF], np.uint32)
"""A state whose counter is about to begin anew."""

CASES: dict[str, Case] = {
    "random bits": (lambda k: [random_bits(k, s, "RNG_PHILOX") for s in ((), (4, 3))], [KEY]),
    "random bits by Threefry": (lambda k: [random_bits(k, s, "RNG_THREE_FRY") for s in ((), (4, 3), (3, 5))], [KEY]),
    "random numbers": (lambda s: drawn(s, "threefry2x32"), [np.array(7, np.int32)]),
    "random numbers by XLA": (lambda s: drawn(s, "rbg"), [np.array(7, np.int32)]),
    "bits of another width": (
        lambda a: (
            lax.bitcast_convert_type(a, np.uint8),
            lax.bitcast_convert_type(a.reshape(2, 2), np.float16),
            lax.bitcast_convert_type(lax.bitcast_convert_type(a, np.int16), np.float32),
        ),
        [np.array([1.5, -2, 0.1, np.inf], np.float32)],
    ),
    "one device": (exchanged, [X[0]]),
    "functions of angles": (
        lambda x: [
            f(x)
            for f in (
                *(jnp.sin, jnp.cos, jnp.tan, jnp.sinh, jnp.cosh, jnp.arcsin, jnp.arccos, jnp.arctan),
                *(jnp.arcsinh, jnp.arctanh, lambda v: jnp.arccosh(v + 1)),
            )
        ],
        [np.array([0.1, 0.4, 0.75, 0.9], np.float32)],
    ),
    "powers": (
        lambda x, y: (lax.pow(x, y), lax.rsqrt(x), lax.logistic(y), lax.optimization_barrier(y)),
        [np.array([0.1, 0.4, 2, 3], np.float32), np.array([-2, 1.5, 0.5, 3], np.float32)],
    ),
    "bits counted": (
        lambda a, b: [f(v) for f in (lax.population_count, lax.clz) for v in (a, b)],
        [np.array([0, 1, -1, 1000, -(2**31)], np.int32), np.array([0, 1, 7, 255, 64], np.uint8)],
    ),
    "derivatives of gamma": (
        lambda x: (lax.digamma(x), lax.polygamma(jnp.array([0, 1, 2, 3], np.float32), x), lax.zeta(x + 2, x)),
        [np.array([0.3, 1.7, 4.2, 20], np.float32)],
    ),
    "gradients of pools": (
        jax.grad(lambda x: sum((pooled(x, *p) ** 2).sum() for p in POOLS)),
        [IMAGES],
    ),
    "gradients of pieces": (
        jax.grad(
            lambda x: (
                (lax.dynamic_slice(x, (0, 2, 3, 0), (1, 4, 4, 3)) ** 3).sum() + (x[:, jnp.array([1, 3, 3])] ** 2).sum()
            )
        ),
        [IMAGES],
    ),
    "slices": (lambda x: (x[:, 1:3, ::2], x[:, ::-1], jnp.concatenate([x, x * 2], 1), x.T), [X]),
    "pads": (
        lambda x: (jnp.pad(x, ((0, 0), (1, 2), (0, 1))), lax.pad(x, 1.0, ((0, 0, 1), (1, -1, 0), (0, 0, 2)))),
        [X],
    ),
    "products": (
        lambda x: (jnp.einsum("bij,bkj->bik", x, x), jnp.tensordot(x, x, [[1, 2], [1, 2]]), x[0] @ x[1].T),
        [X],
    ),
    "rounding": (
        lambda x: (jnp.round(x), jnp.floor(x), jnp.trunc(x * 3), lax.reduce_precision(x, 8, 7), lax.round(x * 2)),
        [X],
    ),
    "functions": (
        lambda x: (
            jnp.log1p(jnp.abs(x)),
            jnp.expm1(x),
            jnp.cbrt(x),
            lax.erf(x),
            lax.erfc(x),
            lax.lgamma(x),
            jnp.arctan2(x, -x),
        ),
        [X],
    ),
    "activations": (
        lambda x: (
            jax.nn.gelu(x),
            jax.nn.softmax(x),
            jax.nn.silu(x),
            jax.nn.relu6(x),
            jnp.logaddexp(x, -x),
            jnp.linalg.norm(x),
        ),
        [X],
    ),
    "tests": (
        lambda x: (jnp.isfinite(x / (x > 0)), x > 0.1, jnp.where(x > 0, x, 0), jnp.clip(x, 0, 1), jnp.mod(x, 0.3)),
        [X],
    ),
    "integers": (
        lambda a, b: (
            a // b,
            a % b,
            a & b,
            a ^ b,
            ~a,
            a << 2,
            lax.shift_right_logical(a, b),
            a >> 1,
            jnp.sign(a),
            a**2,
        ),
        [INTS, DIVISORS],
    ),
    "truncated": (
        lambda a, b: (lax.div(a, b), lax.rem(a, b), lax.convert_element_type(a, bool), a.astype(jnp.uint8)),
        [INTS, DIVISORS],
    ),
    "bits": (lambda x: (lax.bitcast_convert_type(x, jnp.int32), jax.random.uniform(jax.random.key(3), (4,))), [X]),
    "sums": (
        lambda x: (jnp.sum(x), jnp.mean(x, 1), jnp.var(x, 1), jnp.prod(x, 2), jnp.max(x, (0, 2)), jnp.min(x)),
        [X],
    ),
    "truths": (lambda x: (jnp.any(x > 2, 1), jnp.all(x > -1, 2), jnp.sum(x > 0), jnp.max(x > 0, 0)), [X]),
    "places": (lambda x: (jnp.argmax(x, 1), jnp.argmin(x, -1), jnp.argmax(x), jnp.argmax(x / (x > 0), 1)), [X]),
    "two at once": (
        lambda x: lax.reduce((x, x * 2), (0.0, -1.0), lambda p, q: (p[0] + q[0], jnp.maximum(p[1], q[1])), (1,)),
        [X],
    ),
    "running": (
        lambda x: (jnp.cumsum(x, 1), jnp.cumprod(x, 1), lax.cummax(x, axis=1), lax.cumsum(x, axis=1, reverse=True)),
        [X],
    ),
    "associative scan": (lambda x: lax.associative_scan(jnp.multiply, x, axis=1), [X]),
    "sorting": (
        lambda x: (jnp.sort(x, 1), jnp.argsort(x, 1), jnp.sort(x, descending=True), jnp.median(x), lax.top_k(x, 3)),
        [X],
    ),
    "two keys": (lambda x: lax.sort((jnp.round(x), x * 2, x), num_keys=2, dimension=1), [X]),
    "gathers": (
        lambda x, i: (x[i % 2], x[:, i], x[0, i, i], jnp.take_along_axis(x, i[None, :, None], axis=1), x[:, i, i]),
        [X, PLACES],
    ),
    "scatters": (
        lambda x, i: (x.at[:, i].add(1.0), x.at[0, i].set(7.0), x.at[:, i, 0].max(0.1), x.at[1, 2:4].mul(3.0)),
        [X, PLACES],
    ),
    "beyond": (lambda x, i: (x.at[:, i + 3].set(1.0), x.at[i].get(mode="clip"), x[:, i + 9]), [X, PLACES]),
    "windows": (
        lambda x, k: (lax.dynamic_slice(x, (0, k, 1), (2, 2, 3)), lax.dynamic_update_slice(x, x[:, :2, :3], (0, k, 1))),
        [X, np.asarray(2, np.int32)],
    ),
    "rows": (
        lambda x, k: (lax.dynamic_index_in_dim(x, k, 1), lax.dynamic_update_slice(x, x[:1], (k, 0, 0))),
        [X, np.asarray(1, np.int32)],
    ),
    "convolutions": (
        lambda x, k: (
            conv(x, k, (2, 1), "SAME"),
            conv(x, k, (1, 1), ((2, 1), (-1, 3)), rhs_dilation=(2, 1)),
            conv(x, jnp.tile(k[:, :, :1], (1, 1, 1, 3)), (1, 1), "VALID", feature_group_count=3),
        ),
        [IMAGES, KERNEL],
    ),
    "transposed": (lambda x: (back_conv(x, "SAME"), back_conv(x, "VALID")), [X]),
    "pools": (
        lambda x: (
            window(x, -jnp.inf, lax.max, (1, 2, 2, 1), (1, 2, 2, 1), "VALID"),
            window(x, 0.0, lax.add, (1, 3, 3, 1), (1, 1, 2, 1), "SAME"),
            window(x, jnp.inf, lax.min, (1, 2, 2, 1), (1, 1, 1, 1), "SAME"),
            window((x * 9).astype(jnp.int32), 0, lax.add, (1, 2, 2, 1), (1, 1, 1, 1), "SAME"),
        ),
        [IMAGES],
    ),
    "branch": (lambda x: lax.cond(x.sum() > 0, lambda c: c * 2, lambda c: c + 1, x), [X]),
    "cases": (
        lambda x, n: lax.switch(n, [lambda c: c * 2, lambda c: c + 1, lambda c: c], x),
        [X, np.asarray(1, np.int32)],
    ),
    "until": (lambda x: lax.while_loop(lambda c: jnp.sum(c) < 100, lambda c: c * 1.5 + 1, x), [X]),
    "late limit": (lambda x: lax.fori_loop(0, jnp.abs(x[0, 0, 0] * 30).astype(int), lambda i, c: c * 1.1 + i, x), [X]),
    "short loop": (lambda x: lax.fori_loop(0, 3, lambda i, c: c * 1.1 + i, x), [X]),
    "long loop": (lambda x: lax.fori_loop(2, 40, lambda i, c: c * 1.01 + i, x), [X]),
    "scan": (scanned, [SEQUENCE, SQUARE]),
    "scan backwards": (lambda x, w: scanned(x, w, reverse=True), [SEQUENCE, SQUARE]),
    "short scan": (scanned, [SEQUENCE[:4], SQUARE]),
    "mapped": (lambda x: lax.map(lambda r: jnp.sum(r) * r, x), [SEQUENCE]),
}


# networks, as Flax computes them


def dense(x: Any, p: Any) -> Any:
    return x @ p["kernel"] + p["bias"]


def parameters(*shape: int) -> dict[str, Array]:
    return {"kernel": random(*shape) / np.float32(np.sqrt(np.prod(shape[:-1]))), "bias": random(shape[-1])}


def norm(x: Any) -> Any:
    mean = jnp.mean(x, -1, keepdims=True)
    return (x - mean) * lax.rsqrt(jnp.mean((x - mean) ** 2, -1, keepdims=True) + 1e-6)


def mlp(x: Any) -> Any:
    return jax.nn.log_softmax(dense(jax.nn.relu(dense(x, parameters(16, 32))), parameters(32, 10)))


def cnn(x: Any) -> Any:
    for channels, wider in ((3, 8), (8, 16)):
        p = parameters(3, 3, channels, wider)
        x = jax.nn.relu(conv(x, p["kernel"], (1, 1), "SAME") + p["bias"])
        x = window(x, 0.0, lax.add, (1, 2, 2, 1), (1, 2, 2, 1), "VALID") / 4
    return dense(x.reshape(x.shape[0], -1), parameters(4 * 4 * 16, 10))


def transformer(x: Any) -> Any:
    batch, length, width = x.shape
    q, k, v = (dense(norm(x), parameters(width, width)).reshape(batch, length, 4, -1) + s for s in (0, 0.1, 0.2))
    scores = jnp.einsum("bqhd,bkhd->bhqk", q, k) / np.sqrt(width / 4)
    scores = jnp.where(jnp.tril(jnp.ones((length, length), bool)), scores, -1e9)
    mixed = jnp.einsum("bhqk,bkhd->bqhd", jax.nn.softmax(scores), v).reshape(x.shape)
    x = x + dense(mixed, parameters(width, width))
    return x + dense(jax.nn.gelu(dense(norm(x), parameters(width, 4 * width))), parameters(4 * width, width))


def lstm(x: Any) -> Any:
    width = 12
    p = parameters(x.shape[-1] + width, 4 * width)

    def step(state: Any, now: Any) -> Any:
        h, memory = state
        i, f, g, o = jnp.split(dense(jnp.concatenate([now, h], -1), p), 4, -1)
        memory = jax.nn.sigmoid(f + 1) * memory + jax.nn.sigmoid(i) * jnp.tanh(g)
        h = jax.nn.sigmoid(o) * jnp.tanh(memory)
        return (h, memory), h

    start = jnp.zeros((x.shape[1], width))
    return lax.scan(step, (start, start), x)[1]


def residual(x: Any) -> Any:
    """A scan over the weights of layers, as deep networks of Flax are written."""
    weights = jnp.asarray(random(20, 16, 16)) / 6
    return lax.scan(lambda h, w: (h + jnp.tanh(norm(h) @ w), None), x, weights)[0]


MATRICES, RIGHT = random(2, 4, 4), random(2, 4, 3)
POSITIVE = np.einsum("bij,bkj->bik", MATRICES, MATRICES) + np.eye(4, dtype=np.float32)


def triangular(a: Any, b: Any, **options: Any) -> Any:
    return lax.linalg.triangular_solve(a, b, **options)


def rebuilt_eigen(a: Any) -> Any:
    """The eigenvalues, and the matrix again: of vectors, the signs are free."""
    values, vectors = jnp.linalg.eigh(a)
    return values, (vectors * values[:, None]) @ jnp.swapaxes(vectors, 1, 2)


def rebuilt_singular(a: Any) -> Any:
    u, s, vh = jnp.linalg.svd(a, full_matrices=False)
    return s, (u * s[:, None]) @ vh, jnp.linalg.svd(a, compute_uv=False)


FACTORS: dict[str, Case] = {
    "cholesky": (lambda a: (jnp.linalg.cholesky(a), jnp.linalg.cholesky(a, upper=True)), [POSITIVE]),
    "not positive definite": (jnp.linalg.cholesky, [MATRICES]),
    "triangles from the left": (
        lambda a, b: (
            triangular(a, b, left_side=True, lower=True),
            triangular(a, b, left_side=True, lower=False, transpose_a=True, unit_diagonal=True),
        ),
        [POSITIVE, RIGHT],
    ),
    "triangles from the right": (
        lambda a, b: triangular(a, b, left_side=False, lower=True, transpose_a=True),
        [POSITIVE, random(2, 3, 4)],
    ),
    "qr": (lambda a: (*jnp.linalg.qr(a), *jnp.linalg.qr(a, mode="complete")), [RIGHT]),
    "solutions": (lambda a, b: (jnp.linalg.solve(a, b), jnp.linalg.inv(a), jnp.linalg.det(a)), [POSITIVE, RIGHT]),
    "eigenvalues": (rebuilt_eigen, [POSITIVE]),
    "singular values": (rebuilt_singular, [RIGHT]),
}
"""Factors of matrices: calls of LAPACK where JAX lowers for a CPU, operations of StableHLO for others."""

NETWORKS: dict[str, Case] = {
    "mlp": (mlp, [random(4, 16)]),
    "cnn": (cnn, [random(2, 16, 16, 3)]),
    "transformer": (transformer, [random(2, 7, 32)]),
    "lstm": (lstm, [random(21, 3, 8)]),
    "residual": (residual, [random(3, 16)]),
}
