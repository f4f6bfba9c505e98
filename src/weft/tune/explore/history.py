"""The points that were measured, with their scores."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeAlias

import numpy as np

from weft.tune.features import Bools, Doubles, Ints


def keys_of(points: Ints) -> list[bytes]:
    """Returns a key for each point, the same for the same point."""
    rows = np.ascontiguousarray(points, np.int64)
    return [row.tobytes() for row in rows]


def distinct(points: Ints) -> Ints:
    """Returns *points* without those that stood before, in their order."""
    first: dict[bytes, int] = {}
    for i, key in enumerate(keys_of(points)):
        first.setdefault(key, i)
    return points[list(first.values())]


Identify: TypeAlias = Callable[[Ints], list[bytes]]


class History:
    """The measured points of one space, in the order of measurement; a score is a throughput, 0 for a failure.

    Points for which *identify* returns the same key are known to be the same program: one of them is measured.
    """

    def __init__(self, knobs: int, identify: Identify = keys_of) -> None:
        self.points: Ints = np.zeros((0, knobs), np.int64)
        self.scores: Doubles = np.zeros(0)
        self._identify = identify
        self._keys: set[bytes] = set()

    def __len__(self) -> int:
        return len(self.scores)

    def add(self, points: Ints, scores: Doubles) -> None:
        """Notes that *points* have *scores*."""
        self.points = np.concatenate([self.points, points])
        self.scores = np.concatenate([self.scores, scores])
        self._keys.update(self._identify(points))

    def set_score(self, point: Ints, score: float) -> None:
        """Notes the score of a point that was added before it was measured."""
        self.scores[(self.points == point).all(axis=1)] = score

    def contains(self, points: Ints) -> Bools:
        """Tells which of *points* were measured."""
        return np.asarray([key in self._keys for key in self._identify(points)], np.bool_)

    def unseen(self, points: Ints) -> Ints:
        """Returns those of *points* that were not measured, each once."""
        return self.distinct(points[~self.contains(points)])

    def distinct(self, points: Ints) -> Ints:
        """Returns *points* without those that are the same program as one before, in their order."""
        first: dict[bytes, int] = {}
        for i, key in enumerate(self._identify(points)):
            first.setdefault(key, i)
        return points[list(first.values())]

    def best(self, n: int) -> Ints:
        """Returns the *n* points with the highest scores, the best first."""
        return self.points[np.argsort(-self.scores, kind="stable")[:n]]
