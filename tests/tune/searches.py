"""Searches on a space of known scores: an explorer proposes, the space answers, a model is fitted, as a tuner does."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache

import numpy as np
from tests.support.machines import SERVER
from tests.tune.landscapes import MatmulSpace, measured_scores

from weft.tune.explore import Annealing, AnnealingOptions, Explorer, Genetic, History, KnobSpace, RandomSearch
from weft.tune.features import Doubles, Features, Ints, features_of
from weft.tune.models import CostModel, Samples, Shuffled, make_model

NOISE = 0.03


class Landscape:
    """All points of a space with their features and throughputs, computed once."""

    def __init__(self, space: MatmulSpace) -> None:
        self.knobs = KnobSpace(space.sizes)
        points = np.indices(space.sizes).reshape(len(space.sizes), -1).T
        parts = np.array_split(points, 40)
        self._features = Features.joined([features_of(space.nests(p), SERVER) for p in parts])
        self._throughput = np.concatenate([measured_scores(space, p) for p in parts])
        self.best = float(self._throughput.max())

    def features(self, points: Ints) -> Features:
        return self._features.take(self._numbers(points))

    def throughput(self, points: Ints) -> Doubles:
        """Returns the throughputs, relative to the best of all."""
        return self._throughput[self._numbers(points)] / self.best

    def _numbers(self, points: Ints) -> Ints:
        numbers: Ints = np.ravel_multi_index(tuple(points.T), self.knobs.sizes).astype(np.int64)
        return numbers


@cache
def landscape() -> Landscape:
    return Landscape(MatmulSpace())


def search(explorer: Explorer, model: CostModel | None, trials: int, batch: int, seed: int) -> Doubles:
    """Returns the true throughput of what is the best by noisy measurements, after each of them."""
    space, history, noise = landscape(), History(len(landscape().knobs.sizes)), np.random.default_rng(seed)
    while len(history) < trials:
        points = explorer.propose(min(batch, trials - len(history)), history)
        scores = space.throughput(points) * np.exp(NOISE * noise.standard_normal(len(points)))
        history.add(points, scores)
        explorer.observe(points, scores)
        if model is not None:
            model.fit(Samples.of_times(space.features(history.points), 1 / history.scores))
    best = np.maximum.accumulate(history.scores)
    first = [int(np.flatnonzero(history.scores == b)[0]) for b in best]
    return space.throughput(history.points[first])


def guided(model: CostModel, seed: int, trials: int, batch: int, options: AnnealingOptions | None = None) -> Doubles:
    space = landscape()
    explorer = Annealing(space.knobs, lambda points: model.predict(space.features(points)), seed, options)
    return search(explorer, model, trials, batch, seed)


def unguided(name: str, seed: int, trials: int, batch: int) -> Doubles:
    knobs = landscape().knobs
    explorer: Explorer = RandomSearch(knobs, seed) if name == "random" else Genetic(knobs, seed)
    return search(explorer, None, trials, batch, seed)


def mean_interval(values: Sequence[float], seed: int = 0, draws: int = 2000) -> tuple[float, float]:
    """Returns the 95% bootstrap interval of the mean (Efron, 1979)."""
    x = np.asarray(values)
    means = np.random.default_rng(seed).choice(x, (draws, len(x))).mean(axis=1)
    low, high = np.quantile(means, [0.025, 0.975])
    return float(low), float(high)


def shuffled(name: str, seed: int) -> CostModel:
    return Shuffled(make_model(name, seed), seed)
