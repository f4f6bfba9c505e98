"""Inputs of models by chance: what runs are measured on where nobody gives any."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

import numpy as np

from weft.runtime.package import TensorSpec

SYMBOLIC_SIZE: Final = 1
"""The size of a symbolic dimension that nobody tells."""


def random_inputs(
    specs: Sequence[TensorSpec], seed: int = 0, sizes: Mapping[str, int] | None = None
) -> dict[str, np.ndarray]:
    """Returns seeded inputs that fit *specs*: normal floats, and zeros and ones for whole numbers.

    A symbolic dimension has its size in *sizes*, else `SYMBOLIC_SIZE`.
    """
    rng = np.random.default_rng(seed)
    return {s.name: _random(s, rng, sizes or {}) for s in specs}


def _random(spec: TensorSpec, rng: np.random.Generator, sizes: Mapping[str, int]) -> np.ndarray:
    shape = [d if isinstance(d, int) else sizes.get(d, SYMBOLIC_SIZE) for d in spec.shape]
    if spec.dtype.is_float:
        return rng.standard_normal(shape).astype(spec.dtype.numpy)
    return rng.integers(0, 2, shape).astype(spec.dtype.numpy)
