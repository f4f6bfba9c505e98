"""Genetic search: the fittest measured plans are crossed and mutated; no cost model is used."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from weft.tune.explore.history import History
from weft.tune.explore.search_space import ATTEMPTS, SearchSpace, fresh_points, no_points
from weft.tune.features import Doubles, Ints


@dataclass(frozen=True)
class GeneticOptions:
    """The *elite* best points are parents, a parent is the best of *tournament* of them, and *mutated* of the children change."""

    elite: int = 64
    tournament: int = 3
    mutated: float = 0.5


class Genetic:
    """Crosses and mutates the best measured points (Holland, 1975; Goldberg and Deb, 1991, for tournaments)."""

    def __init__(self, space: SearchSpace, seed: int = 0, options: GeneticOptions | None = None) -> None:
        self._space = space
        self._rng = np.random.default_rng(seed)
        self._options = options or GeneticOptions()

    def propose(self, n: int, history: History) -> Ints:
        """Returns *n* unmeasured children; the first generation, and any shortfall, is random."""
        found = no_points(self._space)
        for _ in range(ATTEMPTS if len(history) > 1 else 0):
            if len(found) >= n:
                break
            children = self._children(n, history)
            found = history.distinct(np.concatenate([found, history.unseen(children[self._space.is_valid(children)])]))
        found = found[:n]
        return np.concatenate([found, fresh_points(self._space, self._rng, n - len(found), history, found)])

    def observe(self, points: Ints, scores: Doubles) -> None:
        """Does nothing: the history has the fitness of all points."""

    def _children(self, n: int, history: History) -> Ints:
        elite = history.best(self._options.elite)
        rank = self._rng.integers(0, len(elite), (2, n, self._options.tournament)).min(
            axis=2
        )  # the best of each tournament
        mother, father = elite[rank[0]], elite[rank[1]]
        crossed = np.where(self._rng.random(mother.shape) < 0.5, mother, father)
        mutated = self._rng.random(n) < self._options.mutated
        return np.where(mutated[:, None], self._space.mutate(crossed, self._rng), crossed)
