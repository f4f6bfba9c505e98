"""A recurrent network over the loops of a plan, by PyTorch, the extra `torch`.

After the TreeGRU of Chen et al., "Learning to optimize tensor programs" (2018), section 3.2: each loop is embedded with its
context, a gated recurrent unit (Cho et al., 2014) passes states along the nest, and their sum is scored. The tree of loops of
one block is a chain.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, Final

import numpy as np
import torch

from weft.tune.features import LEVEL_COLUMNS, LEVELS, Doubles, Features, feature_names
from weft.tune.models.cost_model import analytical_score
from weft.tune.models.samples import Samples

WIDTH: Final = 32
STEPS: Final = 60
"""Steps of one fit; a fit goes on from the weights of the one before."""

BATCH: Final = 128
"""Plans of a step, all pairs of which are compared."""

OF_LEVELS: Final = LEVELS * len(LEVEL_COLUMNS)
"""The first columns of the flat features, those of levels."""


class TreeRnn:
    """Learns of two plans of a group which one is faster, from the sequence of their loops: the logistic loss of all pairs."""

    def __init__(self, seed: int = 0, threads: int = 1, prior: float = 1.0) -> None:
        self._threads = threads
        self._prior = prior
        self._rng = np.random.default_rng(seed)
        self._scale: tuple[Any, Any, Any, Any] | None = None
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(seed)
            self._network = torch.nn.ModuleDict(
                {
                    "embed": torch.nn.Sequential(torch.nn.Linear(len(LEVEL_COLUMNS), WIDTH), torch.nn.ReLU()),
                    "levels": torch.nn.GRU(WIDTH, WIDTH, batch_first=True),
                    "whole": torch.nn.Sequential(
                        torch.nn.Linear(len(feature_names()) - OF_LEVELS, WIDTH), torch.nn.ReLU()
                    ),
                    "score": torch.nn.Sequential(
                        torch.nn.Linear(3 * WIDTH, WIDTH), torch.nn.ReLU(), torch.nn.Linear(WIDTH, 1, bias=False)
                    ),
                }
            )
        torch.nn.init.zeros_(self._network["score"][-1].weight)  # until it is fitted, the estimate ranks
        self._optimizer = torch.optim.Adam(self._network.parameters(), lr=5e-3, weight_decay=1e-4)

    def fit(self, samples: Samples) -> None:
        """Takes `STEPS` steps on plans drawn from *samples*."""
        if len(samples) < 2:
            return
        with _threads(self._threads):
            if self._scale is None:
                self._scale = _moments(samples.features)
            levels, whole, prior = self._inputs(samples.features)
            scores = torch.as_tensor(samples.scores, dtype=torch.float32)
            groups = torch.as_tensor(samples.groups)
            weights = torch.as_tensor(samples.weights, dtype=torch.float32)
            for _ in range(STEPS):
                rows = torch.as_tensor(self._rng.permutation(len(samples))[:BATCH])
                predicted = prior[rows] + self._score(levels[rows], whole[rows])
                loss = _pair_loss(predicted, scores[rows], groups[rows], weights[rows])
                self._optimizer.zero_grad()
                loss.backward()
                self._optimizer.step()

    def predict(self, features: Features) -> Doubles:
        """Returns scores of which only differences matter."""
        if self._scale is None or not len(features):
            return analytical_score(features)
        with _threads(self._threads), torch.no_grad():
            levels, whole, prior = self._inputs(features)
            return np.asarray((prior + self._score(levels, whole)).numpy(), np.float64)

    def _inputs(self, features: Features) -> tuple[Any, Any, Any]:
        """Returns the features of levels, the innermost last, those of whole plans, and the estimates."""
        assert self._scale is not None
        level_mean, level_deviation, mean, deviation = self._scale
        levels = (features.levels[:, ::-1] - level_mean) / level_deviation
        whole = (features.flat[:, OF_LEVELS:] - mean) / deviation
        prior = self._prior * analytical_score(features)
        return [torch.as_tensor(np.ascontiguousarray(x, np.float32)) for x in (levels, whole, prior)]  # type: ignore[return-value]

    def _score(self, levels: Any, whole: Any) -> Any:
        states, last = self._network["levels"](self._network["embed"](levels))
        joined = torch.cat([states.mean(dim=1), last[0], self._network["whole"](whole)], dim=1)
        return self._network["score"](joined)[:, 0]


def _moments(features: Features) -> tuple[Any, Any, Any, Any]:
    """Returns the means and deviations that inputs are normalised by, 1 for a deviation of 0."""
    whole = features.flat[:, OF_LEVELS:]
    found = [
        features.levels.mean(axis=(0, 1)),
        features.levels.std(axis=(0, 1)),
        whole.mean(axis=0),
        whole.std(axis=0),
    ]
    for i in (1, 3):
        found[i] = np.where(found[i] > 1e-3, found[i], 1.0)
    return found[0], found[1], found[2], found[3]


def _pair_loss(predicted: Any, scores: Any, groups: Any, weights: Any) -> Any:
    """Returns the mean logistic loss of the pairs of one group, each by how far apart their scores are (Burges et al., 2005)."""
    difference = scores[:, None] - scores[None, :]
    weight = (groups[:, None] == groups[None, :]) * weights[:, None] * difference.clamp(min=0)
    losses = torch.nn.functional.softplus(predicted[None, :] - predicted[:, None])
    return (losses * weight).sum() / weight.sum().clamp(min=1e-6)


@contextmanager
def _threads(count: int) -> Iterator[None]:
    """Has PyTorch use *count* threads meanwhile."""
    before = torch.get_num_threads()
    torch.set_num_threads(count)
    try:
        yield
    finally:
        torch.set_num_threads(before)
