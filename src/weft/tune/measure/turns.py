"""Times a candidate in turns with the incumbent, until the interval of their ratio is narrow enough or its time is over."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from math import ceil
from statistics import median
from time import thread_time
from typing import Final, Generic, TypeVar

from weft.tune.measure.jobs import Limits, Measured
from weft.tune.measure.ratio_interval import is_clearly_worse, is_enough, median_interval, ratios

C = TypeVar("C")
"""A kernel with its arguments, ready to be called."""

COLD: Final = 2.0
"""How many times longer the first call of a long kernel may take than the others: its code and its data are in no cache yet."""

LONG: Final = 1e-3
"""The seconds from which on a kernel is long: it reads its data from memory in less."""

SCREENED: Final = 2
"""The turns after which a candidate that is clearly worse is told first."""

WHOLE: Final = 5
"""How many times its seconds in kernels a measurement may take of the processor, where caches are evicted between calls."""

BEFORE_CLOCK: Final = 16
"""Turns after which that is looked at."""

PARTS: Final = 4
"""The number of parts that the time of a measurement is divided into: after each, the interval is looked at."""


class TurnTimer(ABC, Generic[C]):
    """Times kernels in turns within *limits*; subclasses define the kernel and the clock."""

    def __init__(self, limits: Limits) -> None:
        self.limits = limits

    @abstractmethod
    def first(self, call: C) -> float:
        """Calls a kernel for its results, which nothing called before; returns the seconds that a call takes."""

    @abstractmethod
    def times(self, calls: Sequence[C], repeats: int, number: int = 1) -> list[list[float]]:
        """Returns the seconds of each of *calls*, called *number* times one after another, for each of *repeats* turns."""

    def measure(self, candidate: C, incumbent: C | None, first: float) -> Measured:
        """Returns the times of *candidate*, whose first call took *first* seconds, beside those of *incumbent*."""
        number = 1 if self.limits.evict else max(1, ceil(self.limits.between / first))
        if incumbent is None:
            return self._in_turns([candidate], number)
        if first > LONG:
            beside = [row[0] for row in self.times([incumbent], 2)]
            if is_clearly_worse([first], beside, COLD * self.limits.worse):
                return self._result([first], beside, is_early=True)
        return self._in_turns([candidate, incumbent], number)

    def _in_turns(self, calls: Sequence[C], number: int) -> Measured:
        limits, rows, end = self.limits, list[list[float]](), thread_time() + WHOLE * self.limits.seconds
        repeats = min(SCREENED, limits.fewest) if len(calls) > 1 else limits.fewest
        while True:
            order = 1 if len(rows) % 2 == 0 else -1  # each comes after the other as often as before it
            rows += [row[::order] for row in self.times(calls[::order], repeats, number)]
            times, beside = [r[0] for r in rows], [r[1] for r in rows if len(r) > 1]
            if is_clearly_worse(times, beside, limits.worse):
                return self._result(times, beside, is_early=True)
            interval = median_interval(ratios(times, beside), limits.confidence)
            spent = number * sum(map(sum, rows))
            turn = spent / len(rows)
            left = min(limits.most - len(rows), max(limits.fewest - len(rows), int((limits.seconds - spent) / turn)))
            is_late = bool(limits.evict) and thread_time() > end
            if left < 1 or is_late or is_enough(interval, limits.width):
                return self._result(times, beside, is_early=False)
            repeats = min(left, max(1, ceil(limits.seconds / PARTS / turn)), BEFORE_CLOCK if limits.evict else left)

    def _result(self, times: Sequence[float], beside: Sequence[float], *, is_early: bool) -> Measured:
        if len(times) < len(beside):  # the one call that was too many
            middle = median(beside)
            found = [times[0] / middle]
        else:
            found = ratios(times, beside)
        interval = median_interval(found, self.limits.confidence)
        return Measured(tuple(times), tuple(beside), interval, is_early, 0.0)
