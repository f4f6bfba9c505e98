"""`weft.from_jax`: compiles a function of JAX."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from weft.driver.compile import compile as compile_model
from weft.frontends.jax.frontend import lowered
from weft.runtime.model import Model


def from_jax(fn: Callable[..., Any], *args: Any, **options: Any) -> Model:
    """Compiles the JAX function *fn* for arguments like *args*: arrays, `jax.ShapeDtypeStruct`s, or pytrees of them.

        model = weft.from_jax(lambda x: net.apply(params, x), x)      # a network of Flax
        y = model(x)

    Arrays captured by the function become the model's weights. The inputs are the leaves of *args*, named by parameter and
    path in the tree (`params['w']`); the outputs are the leaves of the result, in JAX's order. *options* are those of
    `weft.compile`.

    Raises `ModelError` if JAX can't trace the function or Weft can't compile it, and `ToolchainError` if JAX is not installed.
    """
    return compile_model(lowered(fn, args), **options)
