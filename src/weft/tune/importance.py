"""How much of the differences between candidates each knob explains, from the candidates of a search alone.

The share is that of a one-way analysis of variance: candidates are grouped by the alternative that they have, and the variance of
the groups' means is compared with that of all. With few candidates the means differ by chance; epsilon squared takes off the
variance that chance is expected to explain (Kelley, "An unbiased correlation ratio measure", 1935).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np

from weft.tune.features import Doubles, Ints
from weft.tune.space import Knob
from weft.tune.task_tuner import Trial

MOST_GROUPS: Final = 8
"""Groups that the alternatives of a knob are put into; of more alternatives, neighbours in its domain share one."""

GROUP: Final = 4
"""Candidates that a group of several alternatives has on average at least."""

FEWEST: Final = 12
"""Candidates from which on anything is said."""


@dataclass(frozen=True)
class Importance:
    """The *share* of the variance of log throughputs that the alternatives of *knob* explain, of which *tried* were measured."""

    knob: Knob
    share: float
    tried: int


def knob_importances(knobs: Sequence[Knob], trials: Sequence[Trial]) -> list[Importance]:
    """Returns the importance of each knob of which several alternatives were measured, the greatest first.

    Candidates that failed have no throughput and do not count; of fewer than `FEWEST` nothing is known. Knobs that were changed
    together explain the same differences, so that shares may add up to more than one.
    """
    measured = [t for t in trials if t.score > 0]
    if len(measured) < FEWEST:
        return []
    points, scores = np.stack([t.point for t in measured]), np.log([t.score for t in measured])
    found = [
        Importance(knob, explained_share(points[:, n], scores), len(np.unique(points[:, n])))
        for n, knob in enumerate(knobs)
    ]
    return sorted([i for i in found if i.tried > 1], key=lambda i: -i.share)


def explained_share(alternatives: Ints, values: Doubles) -> float:
    """Returns the share of the variance of *values* [n] that *alternatives* [n] explain, in [0, 1]: epsilon squared."""
    group = _groups(alternatives)
    n, k = len(values), int(group.max(initial=-1)) + 1
    centred = values - values.mean() if n else values
    total = float(centred @ centred)
    if not 1 < k < n or total <= n * ROUNDING * float(np.abs(values).max()) ** 2:
        return 0.0
    sums, counts = np.bincount(group, centred), np.bincount(group)
    within = centred - (sums / counts)[group]
    chance = float(within @ within) * (n - 1) / (n - k)
    return min(1.0, max(0.0, 1.0 - chance / total))


def _groups(alternatives: Ints) -> Ints:
    """Returns the group of each candidate: that of its alternative, or of a range of alternatives where there are many."""
    most = max(2, min(MOST_GROUPS, len(alternatives) // GROUP))
    _, rank, counts = np.unique(alternatives, return_inverse=True, return_counts=True)
    if len(counts) > most:
        before = np.cumsum(counts) - counts
        rank = (before * most // len(alternatives))[rank]
    groups: Ints = np.unique(rank, return_inverse=True)[1].astype(np.int64)
    return groups


ROUNDING: Final = 1e-24
"""The square of the relative error of a number: values that differ by less are equal."""
