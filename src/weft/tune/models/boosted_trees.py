"""Gradient-boosted trees by XGBoost, the extra `tune`: on pairs of plans, or on throughputs.

Chen and Guestrin, "XGBoost: a scalable tree boosting system" (2016); the rank objective after Chen et al., "Learning to optimize
tensor programs" (2018), section 3.1: a search needs to know which of two plans is faster, not how fast either is.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

import numpy as np
import xgboost

from weft.tune.features import Doubles, Features, Ints
from weft.tune.models.cost_model import LEAST_SCORE, analytical_score
from weft.tune.models.samples import Samples

BINS: Final = 64
ROUNDS: Final = 60
_COMMON: Final = {"tree_method": "hist", "max_bin": BINS, "max_depth": 4, "eta": 0.2, "verbosity": 0}
_PAIRWISE: Final = {
    "objective": "rank:pairwise",
    "lambdarank_pair_method": "mean",
    "lambdarank_num_pair_per_sample": 16,
    "lambdarank_normalization": False,  # with it, gradients shrink and 60 trees are too few
    "lambdarank_score_normalization": False,
}


class _BoostedTrees:
    """The base of both objectives: the trees correct the analytical estimate, and are made anew in each fit."""

    def __init__(self, seed: int, threads: int) -> None:
        self._parameters = {**_COMMON, "seed": seed, "nthread": threads}
        self._threads = threads
        self._booster: Any = None

    def _train(self, features: Features, margin: Doubles, **given: Any) -> None:
        data = xgboost.QuantileDMatrix(features.flat, base_margin=margin, nthread=self._threads, max_bin=BINS, **given)
        self._booster = xgboost.train(self._parameters, data, ROUNDS)

    def _predict(self, features: Features, margin: Doubles) -> Doubles:
        if self._booster is None or not len(features):
            return analytical_score(features)
        found = self._booster.inplace_predict(features.flat, base_margin=margin, predict_type="margin")
        return np.asarray(found, np.float64)


class XgbRank(_BoostedTrees):
    """Learns of two plans of a group which one is faster.

    The analytical estimate is among the features. As a margin that the trees begin with, it ranks random plans better while
    few are measured, yet can keep a search where the estimate is wrong.
    """

    def __init__(self, seed: int = 0, threads: int = 1) -> None:
        super().__init__(seed, threads)
        self._parameters |= _PAIRWISE

    def fit(self, samples: Samples) -> None:
        """Learns from all pairs that the groups have, some drawn for each plan; a group's weight is that of its pairs."""
        if len(samples) < 2:
            return
        s = samples.by_group()
        first = np.unique(s.groups, return_index=True)[1]
        self._train(s.features, np.zeros(len(s)), label=s.scores, qid=s.groups, weight=s.weights[first])

    def predict(self, features: Features) -> Doubles:
        """Returns the margins by which plans win."""
        return self._predict(features, np.zeros(len(features)))


class XgbRegression(_BoostedTrees):
    """Learns the logarithm of a plan's throughput, relative to the best of its group."""

    def __init__(self, seed: int = 0, threads: int = 1, prior: float = 1.0) -> None:
        super().__init__(seed, threads)
        self._parameters |= {"objective": "reg:squarederror"}
        self._prior = prior

    def fit(self, samples: Samples) -> None:
        """Learns how far throughputs are from their estimates; of these, those of each group have the same mean."""
        if len(samples) < 2:
            return
        labels = np.log2(np.maximum(samples.scores, LEAST_SCORE))
        margin = self._prior * analytical_score(samples.features)
        for g in np.unique(samples.groups):
            mine = samples.groups == g
            margin[mine] += (labels[mine] - margin[mine]).mean()
        self._train(samples.features, margin, label=labels, weight=samples.weights)

    def predict(self, features: Features) -> Doubles:
        """Returns logarithms of throughputs, up to a constant."""
        return self._predict(features, self._prior * analytical_score(features))


def regression_trees(rows: Ints, values: Doubles, seed: int) -> Callable[[Ints], Doubles]:
    """Returns a function that predicts the value of each row, as trees learn it from *rows* [n, k] and their *values* [n]."""
    parameters = {**_COMMON, "objective": "reg:squarederror", "base_score": 0.0, "seed": seed, "nthread": 1}
    booster = xgboost.train(parameters, xgboost.DMatrix(rows, label=values), ROUNDS)
    return lambda asked: np.asarray(booster.predict(xgboost.DMatrix(asked)), np.float64)
