"""The explorer protocol, and the explorers without a cost model: random search and grid search."""

from __future__ import annotations

from typing import Protocol

import numpy as np

from weft.tune.explore.history import History
from weft.tune.explore.search_space import SearchSpace, fresh_points, no_points, points_at
from weft.tune.features import Doubles, Ints

CHUNK = 1024
"""The points that a grid search looks at at once."""


class Explorer(Protocol):
    """Decides which points to measure next; the same for the same seed and the same measurements."""

    def propose(self, n: int, history: History) -> Ints:
        """Returns *n* valid points, all different, none of them in *history*; fewer where it finds no more."""
        ...

    def observe(self, points: Ints, scores: Doubles) -> None:
        """Learns the *scores* of proposed *points*: throughputs, or 0 for failures."""
        ...


class RandomSearch:
    """Draws points by chance, each of those left as likely as another."""

    def __init__(self, space: SearchSpace, seed: int = 0) -> None:
        self._space = space
        self._rng = np.random.default_rng(seed)

    def propose(self, n: int, history: History) -> Ints:
        """Returns *n* points by chance."""
        return fresh_points(self._space, self._rng, n, history)

    def observe(self, points: Ints, scores: Doubles) -> None:
        """Does nothing: chance does not learn."""


class GridSearch:
    """Goes through all points in order, the last knob first."""

    def __init__(self, space: SearchSpace, seed: int = 0) -> None:
        del seed
        self._space = space
        self._next = 0
        self._end = float(np.prod(space.sizes, dtype=np.float64))

    def propose(self, n: int, history: History) -> Ints:
        """Returns the next *n* points."""
        found = no_points(self._space)
        while len(found) < n and self._next < self._end:
            numbers = np.arange(self._next, min(self._next + CHUNK, self._end), dtype=np.int64)
            points = points_at(self._space.sizes, numbers)
            is_new = self._space.is_valid(points) & ~history.contains(points)
            taken = np.flatnonzero(is_new)[: n - len(found)]
            found = np.concatenate([found, points[taken]])
            self._next += int(taken[-1]) + 1 if len(found) == n else len(points)
        return found

    def observe(self, points: Ints, scores: Doubles) -> None:
        """Does nothing: the order of a grid search is fixed."""
