"""Models of the same inputs, timed against one another: in turns, and each alone for a while, several times.

Two models of the very same code differ by up to a percent in a run of a second, by more than the spread of their calls says:
where memory lies, and what else runs, changes more slowly than calls do. So each model is made anew several times, and an
interval is one over these times, not over calls.
"""

from __future__ import annotations

import gc
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from statistics import median
from time import perf_counter, process_time

from weft.driver.measure.random_inputs import random_inputs
from weft.runtime.model import Model
from weft.tune.measure import Interval, median_interval

CONFIDENCE = 0.95
TIMES = 6
"""How often models are made: the least and the greatest of so many enclose the median with 97%."""

TURN = 2e-3
"""Seconds that a turn takes at least: short calls are repeated."""

FEWEST, MOST = 7, 500
"""Rounds of one time."""


@dataclass(frozen=True)
class PairedTimes:
    """For each time the seconds of a call of each model: in rounds of turns, and the medians alone."""

    rounds: list[list[list[float]]]
    alone: list[list[float]]

    def ratio(self, n: int, to: int = 0) -> Interval:
        """Return the interval of the time of model *n* relative to that of model *to*."""
        return median_interval([median([r[n] / r[to] for r in rounds]) for rounds in self.rounds], CONFIDENCE)

    def ratio_alone(self, n: int, to: int = 0) -> float:
        return median([t[n] / t[to] for t in self.alone])

    def seconds(self, n: int) -> float:
        return median([median([r[n] for r in rounds]) for rounds in self.rounds])


def paired_times(make: Sequence[Callable[[], Model]], threads: int, seconds: float, times: int = TIMES) -> PairedTimes:
    """Time the models that *make* makes, for *seconds* in turns and as long alone; one thread by its processor time."""
    found = PairedTimes([], [])
    for n in range(times):
        order = [(i + n) % len(make) for i in range(len(make))]  # so that none always gets its memory first
        models = {i: make[i]() for i in order}
        runs = _Runs([models[i] for i in range(len(make))], threads)
        found.rounds.append(runs.in_turns(seconds / times))
        found.alone.append(runs.alone(seconds / times))
        del models, runs
        gc.collect()
    return found


class _Runs:
    """Models as they lie in memory now."""

    def __init__(self, models: Sequence[Model], threads: int) -> None:
        self.models, self.inputs = models, random_inputs(models[0].inputs)
        self.clock = process_time if threads == 1 else perf_counter
        for m in models:
            m(**self.inputs)
        self.number = max(1, math.ceil(TURN / max(self._turn(models[0], 1), 1e-7)))

    def _turn(self, model: Model, number: int) -> float:
        begin = self.clock()
        for _ in range(number):
            model(**self.inputs)
        return (self.clock() - begin) / number

    def in_turns(self, seconds: float) -> list[list[float]]:
        """Return the seconds of a call of each model, for each round; who begins a round changes from one to the next."""
        count, rounds = len(self.models), list[list[float]]()
        end = perf_counter() + seconds
        while len(rounds) < FEWEST or (perf_counter() < end and len(rounds) < MOST):
            order = [(n + len(rounds)) % count for n in range(count)]
            taken = {n: self._turn(self.models[n], self.number) for n in order}
            rounds.append([taken[n] for n in range(count)])
        return rounds[1:]

    def alone(self, seconds: float) -> list[float]:
        """Return the median seconds of a call of each model, each called alone for a part of *seconds*."""
        found = []
        for m in self.models:
            times, end = list[float](), perf_counter() + seconds / len(self.models)
            while len(times) < FEWEST or (perf_counter() < end and len(times) < MOST):
                times.append(self._turn(m, self.number))
            found.append(median(times))
        return found
