"""Random inputs for models, to measure runs without given inputs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

import numpy as np

from weft.graph import Graph
from weft.ir import free_vars
from weft.runtime.package import TensorSpec
from weft.support.dim import Dim
from weft.support.dtypes import handle

WORDS: Final = ("a", "few", "short words")
"""The elements of inputs of strings."""

SYMBOLIC_SIZE: Final = 1
"""The size of a symbolic dimension that nobody tells."""


def random_inputs(
    specs: Sequence[TensorSpec], seed: int = 0, sizes: Mapping[str, int | Dim] | None = None
) -> dict[str, np.ndarray]:
    """Returns seeded inputs that fit *specs*: normal floats, and zeros and ones for whole numbers.

    A symbolic dimension has its size in *sizes*, else the least of its range, and `SYMBOLIC_SIZE` where it has none.
    """
    rng = np.random.default_rng(seed)
    least = {name: least_size(sizes) for s in specs for name, sizes in s.ranges.items()}
    known = {**least, **{name: n for name, n in (sizes or {}).items() if isinstance(n, int)}}
    return {s.name: _random(s, rng, known) for s in specs}


def least_size(sizes: Dim) -> int:
    """Returns the least of *sizes*, but for zero."""
    return max(sizes.units[0], 1) * sizes.multiple


def example_sizes(graph: Graph, given: Mapping[str, int | Dim]) -> dict[str, int]:
    """Returns a size for each symbolic dimension of a graph's inputs, and those *given*.

    It is the least of its range, or `SYMBOLIC_SIZE` where that is not known.
    """
    bounded = {d.unit: (d.name, least_size(d.sizes)) for d in graph.dimensions.values()}
    shown = [v for x in graph.inputs for s in x.shape for v in free_vars(s)]
    sizes = dict([bounded.get(v, (v.name, SYMBOLIC_SIZE)) for v in shown])
    return {**sizes, **{name: n for name, n in given.items() if isinstance(n, int)}}


def _random(spec: TensorSpec, rng: np.random.Generator, sizes: Mapping[str, int]) -> np.ndarray:
    shape = [d if isinstance(d, int) else sizes.get(d, SYMBOLIC_SIZE) for d in spec.shape]
    if spec.dtype is handle:
        return np.asarray(WORDS, object)[rng.integers(0, len(WORDS), shape)]
    if spec.dtype.is_float:
        return rng.standard_normal(shape).astype(spec.dtype.numpy)
    return rng.integers(0, 2, shape).astype(spec.dtype.numpy)
