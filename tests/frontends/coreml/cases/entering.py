"""The table of cases, and what their files enter them with."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import torch

RNG = np.random.default_rng(0)
INFERRED_OTHERWISE = {"scatter_along_axis", "concat.interleaved"}
"""Cases of which coremltools infers values that its documentation does not say."""
CASES: dict[str, tuple[Any, dict[str, Any], Callable[..., Any] | None, int]] = {}


def case(name: str, build: Any, *inputs: Any, wanted: Callable[..., Any] | None = None, version: int = 15) -> None:
    """Enters a program of inputs a, b, c ...: numbers are float32, and integers int32."""
    assert name not in CASES, name
    given: dict[str, Any] = {}
    for k, v in enumerate(inputs):
        array = np.asarray(v)
        given[chr(97 + k)] = array.astype(np.int32 if array.dtype.kind == "i" else np.float32)
    CASES[name] = (build, given, wanted, version)


def f(*shape: int) -> Any:
    return RNG.standard_normal(shape).astype(np.float32)


def u(*shape: int, low: float = 0.05, high: float = 0.95) -> Any:
    return RNG.uniform(low, high, shape).astype(np.float32)


def n(*shape: int, most: int) -> Any:
    return RNG.integers(0, most, shape).astype(np.int32)


def by_torch(function: Callable[..., Any]) -> Callable[..., Any]:
    """Returns a formula of PyTorch as one of NumPy."""

    def formula(*given: Any) -> Any:
        made = function(*map(torch.tensor, given))
        return [v.numpy() for v in made] if isinstance(made, tuple) else made.numpy()

    return formula


X = f(2, 3, 4)
"""The inputs of most cases."""
W = f(5, 4)
IMAGE, KERNEL, BIAS = f(2, 4, 7, 6), f(6, 2, 3, 2), f(6)
