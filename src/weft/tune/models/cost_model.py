"""The cost model protocol: predicts how plans compare before any of them is measured."""

from __future__ import annotations

from typing import Final, Protocol

import numpy as np

from weft.tune.features import Doubles, Features
from weft.tune.models.samples import Samples

LEAST_SCORE: Final = 1e-3
"""The score of failed candidates, where a logarithm is taken."""


class CostModel(Protocol):
    """Learns from measured plans to rank others; its predictions depend only on its seed and on the samples."""

    def fit(self, samples: Samples) -> None:
        """Learns from *samples*, all that were measured so far; samples of earlier calls may be forgotten."""
        ...

    def predict(self, features: Features) -> Doubles:
        """Returns a number for each plan, the higher the faster the plan; only those of one call compare."""
        ...


def analytical_score(features: Features) -> Doubles:
    """Returns the estimated throughput of each plan, as a logarithm to the base of two.

    Trained models learn the difference from it, so that before they are fitted they rank as it does.
    """
    return -np.log2(features.cycles)
