"""The error of a model compiled in a lower precision, relative to its own."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

import numpy as np

from weft.driver.measure.random_inputs import random_inputs
from weft.runtime.model import Model
from weft.support.dim import Dim

SEEDS: Final = (0, 1, 2)
"""The seeds of the inputs that are compared on, unless others are asked for."""


@dataclass(frozen=True)
class Accuracy:
    """The differences of an output, as parts of its spread: that of its greatest and its least element, over all inputs."""

    output: str
    largest: float
    mean: float


def compare_models(
    model: Model, exact: Model, sizes: Mapping[str, int | Dim] | None = None, seeds: tuple[int, ...] = SEEDS
) -> list[Accuracy]:
    """Returns how far each output of floats of *model* is from that of *exact*, the same model in its own precision.

    Both run on seeded inputs (`random_inputs`), symbolic dimensions of *sizes*. Where an output is constant, differences are
    not divided by its spread; elements that are not finite in *exact* are left out.
    """
    found: dict[str, list[tuple[np.ndarray, np.ndarray]]] = {}
    for seed in seeds:
        given = random_inputs(exact.inputs, seed, sizes)
        for spec, got, wanted in zip(exact.outputs, _outputs(model, given), _outputs(exact, given), strict=True):
            if spec.dtype.is_float:
                found.setdefault(spec.name, []).append((got.astype(np.float64), wanted.astype(np.float64)))
    return [_accuracy(name, pairs) for name, pairs in found.items()]


def _outputs(model: Model, given: Mapping[str, np.ndarray]) -> tuple[np.ndarray, ...]:
    made = model(**given)
    return made if isinstance(made, tuple) else (made,)


def _accuracy(name: str, pairs: list[tuple[np.ndarray, np.ndarray]]) -> Accuracy:
    got, wanted = (np.concatenate([p[n].ravel() for p in pairs]) for n in (0, 1))
    known = np.isfinite(wanted)
    if not known.any():
        return Accuracy(name, 0.0, 0.0)
    spread = float(np.ptp(wanted[known])) or 1.0
    apart = np.abs(got[known] - wanted[known]) / spread
    return Accuracy(name, float(apart.max()), float(apart.mean()))
