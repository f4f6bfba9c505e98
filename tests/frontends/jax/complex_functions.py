"""Functions of JAX with complex numbers in them, and among their arguments and results."""

from __future__ import annotations

from typing import Final

import jax.numpy as jnp
import numpy as np
from jax import lax
from tests.frontends.jax.functions import Case, random

X: Final = random(3, 4, 12)
Z: Final = (random(3, 5) + 1j * random(5, 3).T).astype(np.complex64)
W: Final = (random(5, 4) + 1j * random(4, 5).T).astype(np.complex64)
HELD: Final = np.array([[1 + 2j, 3], [0, -1j]], np.complex64)


CASES: Final[dict[str, Case]] = {
    "transforms": (lambda x: (jnp.abs(jnp.fft.fft(x)), jnp.fft.ifft(x, axis=1), jnp.fft.fft2(x).real), [X]),
    "real transforms": (
        lambda x: (jnp.fft.irfft(jnp.fft.rfft(x) * 2), jnp.fft.rfft(x, n=7), jnp.fft.irfft2(jnp.fft.rfft2(x))),
        [X],
    ),
    "three dimensions": (lambda x: jnp.fft.irfftn(jnp.fft.rfftn(x) * 1j, s=(3, 4, 12)), [X]),
    "arithmetic": (lambda x: (x * x - 2j * x + 1, x / (x + 3j), -x, jnp.conj(x), 1 / x), [Z]),
    "functions": (lambda x: (jnp.exp(x), jnp.log(x), jnp.abs(x), jnp.angle(x), x == x[0], x != x[0]), [Z]),
    "products": (lambda x, w: (x @ w, x.real @ w, jnp.sum(x, 1)), [Z, W]),
    "moved": (lambda x: (x.T.reshape(5, 3, 1), x[1:, ::2], jnp.concatenate([x, x[::-1]]), x[jnp.array([2, 0])]), [Z]),
    "padded": (lambda x: (jnp.pad(x, 1, constant_values=2j), x.at[1].set(1j), x.at[:, 2].add(x[:, 0])), [Z]),
    "constants": (lambda x: (jnp.asarray(HELD) * x[0, 0], x.real + 0j), [Z]),
    "loop": (lambda x: lax.fori_loop(0, 20, lambda k, z: z * z / (1 + jnp.abs(z)) + 0.1j, x), [Z]),
    "branch": (lambda x: lax.cond(x[0, 0].real > 0, lambda v: v * 1j, lambda v: v + 1j, x), [Z]),
    "scan": (lambda x: lax.scan(lambda h, v: (h * 0.5j + v, h.real), x[0], jnp.tile(x, (7, 1))), [Z]),
}
