"""The training samples of cost models: the features of measured plans, and how fast each plan was."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from weft.tune.features import Doubles, Features, Ints


@dataclass(frozen=True, eq=False)
class Samples:
    """The plans of one or several tasks. Only plans of one of the *groups* compare with one another.

    *scores* are throughputs relative to the best of the group: 1 for that, 0 for failed ones. A group of more *weight* counts for
    more; all its samples have the same.
    """

    features: Features
    scores: Doubles
    groups: Ints
    weights: Doubles

    def __len__(self) -> int:
        return len(self.scores)

    @staticmethod
    def of_times(features: Features, seconds: Doubles) -> Samples:
        """Returns the plans of one task that took so many *seconds*, infinity where they failed."""
        least = np.min(seconds, initial=np.inf)
        finite = np.isfinite(seconds)
        scores = np.where(finite, least / np.where(finite, seconds, 1.0), 0.0)
        return Samples(features, scores, np.zeros(len(scores), np.int64), np.ones(len(scores)))

    @staticmethod
    def joined(parts: Sequence[Samples]) -> Samples:
        """Returns the samples of all *parts*, the groups of each apart from those of others."""
        groups, count = [], 0
        for p in parts:
            groups.append(np.unique(p.groups, return_inverse=True)[1].astype(np.int64) + count)
            count += len(np.unique(p.groups))
        return Samples(
            Features.joined([p.features for p in parts]),
            np.concatenate([p.scores for p in parts]),
            np.concatenate(groups),
            np.concatenate([p.weights for p in parts]),
        )

    def with_history(self, others: Sequence[Samples], weight: float) -> Samples:
        """Returns the samples with those of *others*, tasks tuned before, whose groups count *weight* times as much.

        So one model is both the global and the local one of Chen et al., "Learning to optimize tensor programs" (2018).
        """
        return Samples.joined([self, *[replace(o, weights=o.weights * weight) for o in others if len(o)]])

    def by_group(self) -> Samples:
        """Returns the same samples with those of each group side by side."""
        order = np.argsort(self.groups, kind="stable")
        return Samples(self.features.take(order), self.scores[order], self.groups[order], self.weights[order])
