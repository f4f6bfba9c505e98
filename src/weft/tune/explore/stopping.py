"""When to stop: more measurements no longer pay once the gain to be expected of them is below the noise of one."""

from __future__ import annotations

from dataclasses import KW_ONLY, dataclass
from itertools import pairwise
from math import log

import numpy as np

WINDOW = 8
"""The number of recent batches from which the next gain is extrapolated."""

FORGETTING = 0.8
"""How much the gain of a batch counts beside that of the batch after it."""


@dataclass(frozen=True)
class Verdict:
    """Whether to stop, and a sentence that says why."""

    reason: str
    _: KW_ONLY
    stops: bool


class Stopping:
    """Follows the best score of a search, batch by batch.

    The gain of a batch is the logarithm of the best score over that before it, of the first over its median. That of the next one
    is expected to be the mean of the latest, the older counting less, or, after n batches that gained nothing, the last that was
    gained over (n + 1) (n + 2), whichever is more: by Laplace's rule of succession the chance of another gain is 1 / (n + 2), and
    gains become smaller as they become rare. The search stops when *horizon* further batches are expected to gain less than
    *noise*, the relative deviation of a measurement, or than *least*, and no prediction says otherwise.
    """

    def __init__(self, noise: float, *, least: float = 0.005, horizon: int = 4, first: int = 4) -> None:
        self._floor = max(noise, least)
        self._horizon = horizon
        self._first = first
        self._best: list[float] = []
        self._batches = 0

    def observe(self, scores: np.ndarray[tuple[int], np.dtype[np.float64]]) -> None:
        """Records the scores of a batch: throughputs, or 0 for failures."""
        ran = scores[scores > 0]
        if not self._best and len(ran):
            self._best.append(float(np.median(ran)))
        if self._best:
            self._best.append(max(self._best[-1], float(np.max(scores))))
        self._batches += 1

    @property
    def gains(self) -> list[float]:
        """The relative gain of each batch from the first on of which something ran, as a logarithm."""
        return [log(after / before) for before, after in pairwise(self._best)]

    @property
    def expected_gain(self) -> float:
        """The relative gain to be expected of the next batch; infinite before anything has run.

        A tuner of several tasks gives its time to that for which this, times the task's share of the run time, is the largest.
        """
        gains = self.gains[-WINDOW:]
        if not gains:
            return float("inf")
        weights = np.power(FORGETTING, np.arange(len(gains))[::-1])
        recent = float(np.dot(gains, weights) / weights.sum())
        last = next((g for g in reversed(self.gains) if g > self._floor / 2), self._floor)
        return max(recent, last / ((self._fruitless + 1) * (self._fruitless + 2)))

    @property
    def _fruitless(self) -> int:
        """The batches since the last that gained something."""
        found = 0
        for g in reversed(self.gains):
            if g > self._floor / 2:
                break
            found += 1
        return found

    def verdict(self, predicted_gain: float = 0.0) -> Verdict:
        """Returns whether to stop.

        *predicted_gain* is a trusted model's prediction for the next batch, as the logarithm of the best prediction over the
        best score; 0 where there is none.
        """
        if self._batches < self._first or not self._best:
            return Verdict(f"only {self._batches} batches were measured", stops=False)
        ahead = self.expected_gain * self._horizon
        if ahead >= self._floor:
            return Verdict(f"the next {self._horizon} batches are expected to gain {_percent(ahead)}", stops=False)
        if predicted_gain >= self._floor:
            return Verdict(f"the model predicts a gain of {_percent(predicted_gain)}", stops=False)
        return Verdict(
            f"the last {self._fruitless} of {self._batches} batches gained nothing, and the next {self._horizon} are expected "
            f"to gain {_percent(ahead)}, less than can be told from noise ({_percent(self._floor)})",
            stops=True,
        )


def _percent(x: float) -> str:
    return f"{100 * np.expm1(x):.1f}%"
