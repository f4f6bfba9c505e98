"""How much of the differences between candidates each knob explains, from the candidates of a search alone.

By permutation: regression trees learn the candidates' throughputs from their alternatives, and predict those of candidates that
they have not seen. A knob matters as far as they err more once its alternatives are those of other candidates (Breiman, "Random
forests", 2001, section 10); what matters only together with others shows, too. Half of what the square of the error grows by,
over the variance, is the knob's share in it with all its interactions: its total effect (Saltelli, "Making best use of model
evaluations to compute sensitivity indices", 2002).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np

from weft.support.lazy_import import resolve
from weft.tune.features import Doubles, Ints
from weft.tune.space import Knob
from weft.tune.task_tuner import Trial

FEWEST: Final = 24
"""Candidates from which on anything is said."""

FOLDS: Final = 5
"""The parts of the candidates of which each is predicted by trees that have seen the others."""

PERMUTATIONS: Final = 20
"""How often a candidate's alternative is replaced."""


@dataclass(frozen=True)
class Importance:
    """The *share* of the variance of log throughputs that *knob* has part in, of whose alternatives *tried* were measured."""

    knob: Knob
    share: float
    tried: int


def knob_importances(knobs: Sequence[Knob], trials: Sequence[Trial]) -> list[Importance]:
    """Returns the importance of each knob of which several alternatives were measured, the greatest first.

    Candidates that failed have no throughput and do not count; of fewer than `FEWEST` nothing is known. Several knobs may have
    part in the same differences, so that shares may add up to more than one. Raises `ModuleNotFoundError` without XGBoost.
    """
    measured = [t for t in trials if t.score > 0]
    if len(measured) < FEWEST:
        return []
    points, scores = np.stack([t.point for t in measured]), np.log([t.score for t in measured])
    tried = [len(np.unique(column)) for column in points.T]
    found = zip(knobs, permutation_shares(points, scores).tolist(), tried, strict=True)
    return sorted([Importance(*each) for each in found if each[2] > 1], key=lambda i: -i.share)


def permutation_shares(points: Ints, values: Doubles, seed: int = 0) -> Doubles:
    """Returns the share [k] of each knob in the variance of *values* [n], in [0, 1]; *points* [n, k] are the alternatives."""
    regression_trees = resolve("weft.tune.models.boosted_trees:regression_trees")
    rng = np.random.default_rng(seed)
    n, k = points.shape
    centred = values - values.mean()
    variance, grown = float(centred @ centred) / n, np.zeros(k)
    if variance <= ROUNDING * float(np.abs(values).max()) ** 2:
        return grown
    fold = rng.permutation(n) % FOLDS
    for held in range(FOLDS):
        predict = regression_trees(points[fold != held], centred[fold != held], seed)
        unseen, wanted = points[fold == held], centred[fold == held]
        changed = np.tile(unseen, (k, PERMUTATIONS, 1, 1))
        for knob in range(k):
            changed[knob, ..., knob] = rng.choice(points[:, knob], changed.shape[1:3])
        off = predict(changed.reshape(-1, k)).reshape(changed.shape[:3]) - wanted
        grown += (off**2).mean(1).sum(1) - float(((predict(unseen) - wanted) ** 2).sum())
    shares: Doubles = np.clip(grown / n / (2 * variance), 0.0, 1.0)
    return shares


ROUNDING: Final = 1e-24
"""The square of the relative error of a number: values that differ by less are equal."""
