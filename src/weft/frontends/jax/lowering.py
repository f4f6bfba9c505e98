"""Functions of JAX as StableHLO, by JAX itself: traced with example arguments, the arrays that they hold as weights."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import jax
import numpy as np
from jax.tree_util import keystr, tree_flatten_with_path

from weft.frontends.jax.lowered_function import LoweredFunction
from weft.support.errors import ModelError


def lower(fn: Callable[..., Any], given: Sequence[Any] | Mapping[str, Any]) -> LoweredFunction:
    """Returns *fn* lowered for arguments like those *given*, in order or by name: trees of arrays or of shapes.

    Raises `ModelError` where JAX can't trace it.
    """
    args, kwargs = ((), dict(given)) if isinstance(given, Mapping) else (tuple(given), {})
    try:
        closed = jax.make_jaxpr(fn)(*args, **kwargs)
        flat = [leaf for _, leaf in tree_flatten_with_path((args, kwargs))[0]]
        traced = jax.jit(lambda held, *a: jax.core.eval_jaxpr(closed.jaxpr, held, *a), keep_unused=True)
        text = traced.lower(closed.consts, *flat).as_text(debug_info=True)
    except Exception as error:  # the function's own errors, and those of JAX
        told = str(error).strip().partition("\n")[0]
        raise ModelError(
            f"JAX can't trace the function: {type(error).__name__}: {told}",
            hint="call it with these arguments under jax.jit, and mend what that says",
        ) from error
    return LoweredFunction(text, tuple([np.asarray(w) for w in closed.consts]), tuple(_names(fn, args, kwargs)))


def _names(fn: Callable[..., Any], args: Sequence[Any], kwargs: Mapping[str, Any]) -> list[str]:
    """Returns a name for each array among the arguments: `x`, or `params['dense']['kernel']` inside of a tree."""
    try:
        bound = list(inspect.signature(fn).bind(*args, **kwargs).arguments)
    except (TypeError, ValueError):
        bound = []
    names = [bound[k] if k < len(bound) else f"arg{k}" for k in range(len(args))]
    pairs = [*zip(names, args, strict=True), *[(k, kwargs[k]) for k in sorted(kwargs)]]
    return [f"{name}{keystr(path)}" for name, tree in pairs for path, _ in tree_flatten_with_path(tree)[0]]
