"""Parallel simulated annealing on a cost model, and batches that are good and different.

After Chen et al., "Learning to optimize tensor programs" (2018), sections 3.3 and 3.4: chains walk on a model's predictions and
keep their places from one round to the next; of the points they saw, a batch is chosen that is good and diverse.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np

from weft.tune.explore.history import History, distinct, keys_of
from weft.tune.explore.search_space import Rng, SearchSpace, fresh_points
from weft.tune.features import Doubles, Ints

MOST_LOOKED_AT = 4
"""How many times more points than are wanted are looked at for those that were not measured."""

Score: TypeAlias = Callable[[Ints], Doubles]
"""A model's predictions for points; higher is faster."""


@dataclass(frozen=True)
class AnnealingOptions:
    """The options of the chains' random walks, and of choosing a batch from the visited points.

    *chains* walk *steps* steps while the temperature falls from *hot* deviations of their scores to nothing; *elite* of them
    begin at the best measured points. A batch is chosen of *pool* times as many points; one all of whose knobs are new to the
    batch is worth as much as one that scores *diversity* deviations better. *random* of a batch is drawn by chance, of the first,
    before the model has seen any plan of the task, *random_first*: it is told by the estimate then, or by other tasks.
    """

    chains: int = 64
    steps: int = 20
    hot: float = 1.0
    elite: float = 0.25
    pool: int = 8
    diversity: float = 0.5
    random: float = 0.05
    random_first: float = 0.25


class Annealing:
    """Proposes points that a cost model predicts to be fast; *score* returns the current model's predictions."""

    def __init__(
        self, space: SearchSpace, score: Score, seed: int = 0, options: AnnealingOptions | None = None
    ) -> None:
        self._space = space
        self._score = score
        self._rng = np.random.default_rng(seed)
        self._options = options or AnnealingOptions()
        self._chains: Ints = np.zeros((0, len(space.sizes)), np.int64)

    def propose(self, n: int, history: History) -> Ints:
        """Returns *n* points: the best of a walk that differ, and some by chance."""
        share = self._options.random if len(history) else self._options.random_first
        by_chance = int(self._rng.binomial(n, share))
        points, scores = self._walk(history, self._options.pool * n)
        chosen = points[choose_diverse(points, scores, n - by_chance, self._options.diversity)]
        by_chance_points = fresh_points(self._space, self._rng, n - len(chosen), history, chosen)
        return np.concatenate([chosen, by_chance_points])

    def observe(self, points: Ints, scores: Doubles) -> None:
        """Does nothing: measurements reach the model, and the history seeds the chains."""

    def _walk(self, history: History, kept: int) -> tuple[Ints, Doubles]:
        """Returns the *kept* best points that the chains saw and that were not measured, with their scores."""
        points = self._start(history)
        scores = self._score(points)
        pool = _Pool(history, kept, self._rng)
        pool.add(points, scores)
        scale = self._options.hot * max(float(np.std(scores)), 1e-12)
        for temperature in np.linspace(scale, 0, self._options.steps):
            proposed = self._space.mutate(points, self._rng)
            valid = self._space.is_valid(proposed)
            proposed[~valid] = points[~valid]
            found = self._score(proposed)
            pool.add(proposed, found)
            worse = np.minimum(0.0, found - scores) / max(temperature, 1e-12)
            accepted = self._rng.random(len(points)) < np.exp(worse)
            points, scores = np.where(accepted[:, None], proposed, points), np.where(accepted, found, scores)
        self._chains = points
        return pool.best()

    def _start(self, history: History) -> Ints:
        """Returns where chains begin: at the best measured points, where they ended, and anywhere for as many as are missing."""
        count = self._options.chains
        elite = history.best(int(self._options.elite * count))
        kept = distinct(self._chains)[: count - len(elite)]
        return np.concatenate([elite, kept, self._space.sample(self._rng, count - len(elite) - len(kept))])


class _Pool:
    """The best points seen that were not measured."""

    def __init__(self, history: History, size: int, rng: Rng) -> None:
        self._history = history
        self._rng = rng
        self._size = size
        self._points: list[Ints] = []
        self._scores: list[Doubles] = []

    def add(self, points: Ints, scores: Doubles) -> None:
        self._points.append(points)
        self._scores.append(scores)

    def best(self) -> tuple[Ints, Doubles]:
        """Returns the points, the best first."""
        points, scores = np.concatenate(self._points), np.concatenate(self._scores)
        points, rows = np.unique(points, axis=0, return_index=True)
        scores = scores[rows]
        first = self._rng.permutation(len(points))  # so that of equals none is preferred
        order = first[np.argsort(-scores[first], kind="stable")]
        order = order[: MOST_LOOKED_AT * self._size]
        row = {key: n for n, key in zip(order, keys_of(points[order]), strict=True)}
        new = [row[key] for key in keys_of(self._history.unseen(points[order]))][: self._size]
        return points[new], scores[new]


def choose_diverse(points: Ints, scores: Doubles, n: int, diversity: float) -> Ints:
    """Returns the rows of *n* of *points* that score well and differ, chosen one after another.

    The sum of scores and of the alternatives covered is submodular, so that the greedy choice is within 1 - 1/e of the best
    (Nemhauser, Wolsey and Fisher, 1978).
    """
    if not len(points):
        return np.zeros(0, np.int64)
    quality = scores / max(float(np.std(scores)), 1e-12)
    covered = np.zeros((points.shape[1], int(points.max(initial=0)) + 1), np.bool_)
    knobs, left = np.arange(points.shape[1]), np.ones(len(points), np.bool_)
    chosen: list[int] = []
    for _ in range(min(n, len(points))):
        novelty = (~covered[knobs, points]).sum(axis=1) / max(1, len(knobs))
        best = int(np.argmax(np.where(left, quality + diversity * novelty, -np.inf)))
        chosen.append(best)
        left[best] = False
        covered[knobs, points[best]] = True
    return np.asarray(chosen, np.int64)
