"""Searches on spaces of known scores: an explorer proposes, the space answers, a model is fitted, as a tuner does."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
from tests.support.machines import SERVER
from tests.tune.landscapes import MatmulSpace, measured_scores

from weft.tune.explore import Annealing, AnnealingOptions, Explorer, Genetic, History, KnobSpace, RandomSearch
from weft.tune.features import Doubles, Ints, features_of
from weft.tune.models import CostModel, Samples, Shuffled, make_model

Search = Callable[[MatmulSpace, int], Explorer]


def search(
    space: MatmulSpace, explorer: Explorer, model: CostModel | None, trials: int, batch: int, seed: int
) -> Doubles:
    """Returns the best noiseless throughput known after each of *trials* noisy measurements."""
    history, truth = History(len(space.sizes)), np.zeros(0)
    while len(history) < trials:
        points = explorer.propose(min(batch, trials - len(history)), history)
        scores = measured_scores(space, points, seed=seed + len(history), noise=0.03)
        history.add(points, scores)
        explorer.observe(points, scores)
        truth = np.concatenate([truth, measured_scores(space, points)])
        if model is not None:
            model.fit(Samples.of_times(features_of(space.nests(history.points), SERVER), 1 / history.scores))
    best = np.maximum.accumulate(history.scores)
    return np.asarray([truth[np.flatnonzero(history.scores == b)[0]] for b in best])


def guided(
    space: MatmulSpace, model: CostModel, seed: int, trials: int, batch: int, options: AnnealingOptions | None = None
) -> Doubles:
    knobs = KnobSpace(space.sizes)

    def score(points: Ints) -> Doubles:
        return model.predict(features_of(space.nests(points), SERVER))

    return search(space, Annealing(knobs, score, seed, options), model, trials, batch, seed)


def unguided(space: MatmulSpace, name: str, seed: int, trials: int, batch: int) -> Doubles:
    knobs = KnobSpace(space.sizes)
    explorer: Explorer = RandomSearch(knobs, seed) if name == "random" else Genetic(knobs, seed)
    return search(space, explorer, None, trials, batch, seed)


def mean_interval(values: Sequence[float], seed: int = 0, draws: int = 2000) -> tuple[float, float]:
    """Returns the 95% bootstrap interval of the mean (Efron, 1979)."""
    x = np.asarray(values)
    means = np.random.default_rng(seed).choice(x, (draws, len(x))).mean(axis=1)
    low, high = np.quantile(means, [0.025, 0.975])
    return float(low), float(high)


def shuffled(name: str, seed: int) -> CostModel:
    return Shuffled(make_model(name, seed), seed)
