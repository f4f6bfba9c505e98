"""Intervals for medians by order statistics, and the rule that ends a measurement: pure functions of the times.

Of n independent samples, the number below the median is binomial with probability 1/2, whatever the distribution. So the k-th
smallest and the k-th largest enclose it with the probability that k to n - k of n coins show heads (David and Nagaraja, "Order
Statistics", 2003, section 7.1).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from math import comb
from statistics import median, median_high


@dataclass(frozen=True)
class Interval:
    """A median, and the bounds that enclose it."""

    low: float
    middle: float
    high: float

    @property
    def width(self) -> float:
        """The distance of the bounds, relative to the middle."""
        return (self.high - self.low) / self.middle if self.middle > 0 else float("inf")


@cache
def median_rank(count: int, confidence: float) -> int:
    """Returns the largest k for which the k-th smallest and k-th largest of *count* samples enclose the median; 0 for none."""
    outside, rank = 0.0, 0
    while rank < count // 2:
        outside += 2 * comb(count, rank) / 2**count
        if 1 - outside < confidence:
            break
        rank += 1
    return rank


def median_interval(samples: Sequence[float], confidence: float) -> Interval:
    """Returns the interval that encloses the median with *confidence*; unbounded where there are too few samples for that."""
    ordered = sorted(samples)
    rank, middle = median_rank(len(ordered), confidence), median(ordered)
    if rank == 0:
        return Interval(0.0, middle, float("inf"))
    return Interval(ordered[rank - 1], middle, ordered[-rank])


def enclosing(intervals: Sequence[Interval]) -> Interval:
    """Returns the interval that encloses all *intervals*, with the median of their medians."""
    middle = median([i.middle for i in intervals])
    return Interval(min(i.low for i in intervals), middle, max(i.high for i in intervals))


def ratios(times: Sequence[float], beside: Sequence[float]) -> list[float]:
    """Returns the ratio of each of *times* to the one measured beside it; to the median of all where there are none beside."""
    if not beside:
        middle = median(times)
        return [t / middle for t in times]
    return [t / b for t, b in zip(times, beside, strict=True)]


def is_clearly_worse(times: Sequence[float], beside: Sequence[float], factor: float) -> bool:
    """Tells whether the best of *times* is above *factor* times the (upper) median of those measured beside them.

    Of two turns that is the slower one: the mean of both would call a kernel slower than itself where one turn was disturbed.
    """
    return bool(times and beside) and min(times) > factor * median_high(beside)


def is_enough(interval: Interval, width: float) -> bool:
    """Tells whether *interval* is narrower than *width*, or leaves no doubt by twice that that the ratio is above 1."""
    return interval.width < width or interval.low > 1 + 2 * width
