"""`weft.from_jax`: compiles a function of JAX."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from weft.driver.compile import compile as compile_model
from weft.frontends.jax.frontend import lowered
from weft.runtime.model import Model


def from_jax(fn: Callable[..., Any], *args: Any, **options: Any) -> Model:
    """Compiles *fn*, a function of JAX, for arguments like *args*: arrays, `jax.ShapeDtypeStruct`s, or trees of them.

        model = weft.from_jax(lambda x: net.apply(params, x), x)      # a network of Flax
        y = model(x)

    Arrays that the function holds are the model's weights. Its inputs are the arrays among *args*, called by their parameter and
    their place in the tree (`params['w']`), and its outputs the arrays among the results, in JAX's order. *options* are those of
    `weft.compile`.

    Raises `ModelError` where JAX can't trace the function, or Weft can't compile it, and `ToolchainError` without JAX.
    """
    return compile_model(lowered(fn, args), **options)
