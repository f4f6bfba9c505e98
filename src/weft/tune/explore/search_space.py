"""The interface of search spaces: points are index vectors, so that explorers work on matrices of integers."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from typing import Any, Protocol, TypeAlias

import numpy as np

from weft.tune.explore.history import History
from weft.tune.features import Bools, Doubles, Ints

Rng: TypeAlias = np.random.Generator

LARGEST_ENUMERATED = 1 << 16
"""The points of a space of which all that are left are looked through when chance finds none."""

ATTEMPTS = 20
"""The draws after which chance is taken to find nothing more."""


class SearchSpace(Protocol):
    """A space of points: `sizes[k]` are the alternatives of knob k, and a row of a matrix has an index for each knob."""

    @property
    def sizes(self) -> tuple[int, ...]:
        """The number of alternatives of each knob."""
        ...

    def is_valid(self, points: Ints) -> Bools:
        """Tells which of *points* stand for plans."""
        ...

    def sample(self, rng: Rng, n: int) -> Ints:
        """Returns up to *n* valid points by chance; the same may be among them twice."""
        ...

    def mutate(self, points: Ints, rng: Rng) -> Ints:
        """Returns neighbours of *points*, one for each; they need not be valid."""
        ...


class KnobSpace:
    """A space in which knobs do not depend on one another; a base of others, which define the valid points."""

    def __init__(self, sizes: tuple[int, ...]) -> None:
        self._sizes = sizes

    @cached_property
    def near(self) -> tuple[Ints, ...]:
        """For each knob the alternatives that are like each of its own, `[size, m]`: those beside it, sizes stand in order."""
        return tuple([beside(size) for size in self.sizes])

    @property
    def sizes(self) -> tuple[int, ...]:
        """The number of alternatives of each knob."""
        return self._sizes

    def is_valid(self, points: Ints) -> Bools:
        """Tells which of *points* stand for plans: all of them."""
        return np.ones(len(points), np.bool_)

    def sample(self, rng: Rng, n: int) -> Ints:
        """Returns up to *n* valid points, each knob drawn evenly."""
        found: list[Ints] = []
        for _ in range(ATTEMPTS):
            drawn = rng.integers(0, self.sizes, (n, len(self.sizes)))
            found.append(drawn[self.is_valid(drawn)])
            if sum(map(len, found)) >= n:
                break
        return np.concatenate(found)[:n]

    def mutate(self, points: Ints, rng: Rng) -> Ints:
        """Returns neighbours of *points*: see `change_knobs`."""
        return change_knobs(points, self.near, rng)


def beside(size: int) -> Ints:
    """Returns for each of *size* alternatives in order the one before and the one after it, at the ends the only one twice."""
    each = np.arange(size)
    last = max(0, size - 1)
    return np.stack(
        [np.where(each > 0, each - 1, min(1, last)), np.where(each < last, each + 1, max(0, last - 1))], axis=1
    )


def alike(numbers: Doubles, count: int) -> Ints:
    """Returns for each alternative, whose numbers are a row of *numbers*, the *count* others of the nearest ratios."""
    scale = np.log2(1 + np.abs(numbers))
    found = np.empty((len(scale), min(count, len(scale) - 1)), np.int64)
    for row, mine in enumerate(scale):
        distance = np.abs(scale - mine).sum(axis=1)
        distance[row] = np.inf
        found[row] = np.argsort(distance, kind="stable")[: found.shape[1]]
    return found


def change_knobs(points: Ints, near: Sequence[Ints], rng: Rng) -> Ints:
    """Returns *points* with one or two knobs changed in each, half of them to an alternative that is *near*, half to any."""
    changed, sizes = points.copy(), np.array([len(table) for table in near], np.int64)
    free = np.flatnonzero(sizes > 1)
    if not len(free):
        return changed
    rows = np.arange(len(points))
    for is_changed in (np.ones(len(points), np.bool_), rng.random(len(points)) < 0.5):
        knob = free[rng.integers(0, len(free), len(points))]
        size, old = sizes[knob], changed[rows, knob]
        anywhere = (old + rng.integers(1, size)) % size
        step = rng.random(len(points))
        alike = np.array(
            [near[k][o][int(x * near[k].shape[1])] for k, o, x in zip(knob, old, step, strict=True)], np.int64
        )
        new = np.where(rng.random(len(points)) < 0.5, alike, anywhere)
        changed[rows, knob] = np.where(is_changed, new, old)
    return changed


def fresh_points(space: SearchSpace, rng: Rng, n: int, history: History, taken: Ints | None = None) -> Ints:
    """Returns *n* valid points by chance that are neither in *history* nor among *taken*; fewer where no more are found."""
    found = taken if taken is not None else no_points(space)
    wanted = len(found) + n
    for _ in range(ATTEMPTS):
        if len(found) >= wanted:
            break
        found = history.distinct(np.concatenate([found, history.unseen(space.sample(rng, 2 * n))]))
    if len(found) < wanted and is_small(space):
        left = points_at(space.sizes, np.arange(np.prod(space.sizes, dtype=np.int64)))
        left = rng.permutation(history.unseen(left[space.is_valid(left)]))
        found = history.distinct(np.concatenate([found, left]))
    return found[wanted - n : wanted]


def is_small(space: SearchSpace) -> bool:
    """Tells whether all points of *space* can be looked through."""
    return bool(np.prod(space.sizes, dtype=np.float64) <= LARGEST_ENUMERATED)


def points_at(sizes: tuple[int, ...], numbers: np.ndarray[Any, np.dtype[np.int64]]) -> Ints:
    """Returns the points of so many numbers: their digits in the mixed radix of *sizes*, the last knob counting first."""
    digits = []
    for size in sizes[::-1]:
        numbers, digit = np.divmod(numbers, size)
        digits.append(digit)
    return np.stack(digits[::-1], axis=1) if digits else np.zeros((len(numbers), 0), np.int64)


def no_points(space: SearchSpace) -> Ints:
    """Returns a matrix of no points."""
    return np.zeros((0, len(space.sizes)), np.int64)
