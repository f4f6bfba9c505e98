"""Models that learn nothing: the analytical estimate, and chance."""

from __future__ import annotations

from zlib import crc32

import numpy as np

from weft.tune.features import Doubles, Features
from weft.tune.models.cost_model import CostModel, analytical_score
from weft.tune.models.samples import Samples


class Analytical:
    """Ranks plans by the cycles that `cost` estimates for them."""

    def __init__(self, seed: int = 0, threads: int = 1) -> None:
        del seed, threads

    def fit(self, samples: Samples) -> None:
        """Does nothing: there is nothing to learn."""

    def predict(self, features: Features) -> Doubles:
        """Returns the estimated throughput, as a logarithm."""
        return analytical_score(features)


class Random:
    """Gives each plan a number by chance, always the same for the same plan: as a search without a model does."""

    def __init__(self, seed: int = 0, threads: int = 1) -> None:
        del threads
        self._seed = seed

    def fit(self, samples: Samples) -> None:
        """Does nothing: there is nothing to learn."""

    def predict(self, features: Features) -> Doubles:
        """Returns numbers from 0 to 1."""
        hashes = [crc32(row.tobytes(), self._seed) for row in np.ascontiguousarray(features.flat)]
        return np.asarray(hashes, np.float64) / (1 << 32)


class Shuffled:
    """A control: gives each plan the number that *model* predicts for another one.

    A search that does as well with it gains nothing by the model.
    """

    def __init__(self, model: CostModel, seed: int = 0) -> None:
        self._model = model
        self._rng = np.random.default_rng(seed)

    def fit(self, samples: Samples) -> None:
        """Fits the model."""
        self._model.fit(samples)

    def predict(self, features: Features) -> Doubles:
        """Returns the model's predictions in another order."""
        return self._rng.permutation(self._model.predict(features))
