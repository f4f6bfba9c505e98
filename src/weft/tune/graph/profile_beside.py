"""Times the kernels of two forms of one model in turns, each in a run of its own form, with the caches as that leaves them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from statistics import median
from time import perf_counter
from typing import Any, Final

import ml_dtypes
import numpy as np

from weft.driver.build import Compilation
from weft.driver.measure.profile import Profiler
from weft.tune.measure import Interval, median_interval

CONFIDENCE: Final = 0.95

FEWEST_TURNS: Final = 6
"""Turns for which the interval of a median is bounded."""

MOST_TURNS: Final = 60

RUNS: Final = 2
"""Runs of a model in its turn, the first of which finds the caches as the other model left them and does not count."""

LARGEST_ERROR: Final = 1e-3
"""The largest difference of two results, relative to the largest number among them: orders of summing, and algorithms."""

ROUNDINGS: Final = 4
"""The same in roundings of a number, for types that are rounded more coarsely."""


@dataclass(frozen=True)
class Beside:
    """The seconds of each call of two forms of a model, medians over turns, and the interval of the ratio of their runs."""

    first: tuple[float, ...]
    second: tuple[float, ...]
    ratio: Interval


class ModelTimer:
    """Runs the kernels of a compiled model with given *inputs*; one thread is timed by its processor time."""

    def __init__(self, made: Compilation, inputs: Mapping[str, np.ndarray[Any, Any]], threads: int) -> None:
        self.profiler = Profiler(made, inputs, threads)
        self.is_processor_time = threads == 1

    def run(self) -> list[int]:
        """Returns the nanoseconds that each call took, once the caches are its own."""
        stamps = self.profiler.run(RUNS, processor_time=self.is_processor_time)[-1]
        return [b - a for a, b in pairwise(stamps)]

    @property
    def outputs(self) -> Sequence[np.ndarray[Any, Any]]:
        """The outputs of the last run."""
        return self.profiler.outputs


def profile_beside(first: ModelTimer, second: ModelTimer, seconds: float) -> Beside:
    """Runs two models in turns for *seconds*, each as often first as the other."""
    taken: tuple[list[list[int]], list[list[int]]] = ([], [])
    end = perf_counter() + seconds
    while (turns := len(taken[0])) < MOST_TURNS and (perf_counter() < end or turns < FEWEST_TURNS):
        for n in (0, 1) if turns % 2 else (1, 0):
            taken[n].append((first, second)[n].run())
    ratios = [sum(a) / max(1, sum(b)) for a, b in zip(*taken, strict=True)]
    return Beside(_medians(taken[0]), _medians(taken[1]), median_interval(ratios, CONFIDENCE))


def profile_alone(timer: ModelTimer, seconds: float) -> tuple[float, ...]:
    """Returns the seconds of each call of one model."""
    return profile_beside(timer, timer, seconds).first


def differs(found: Sequence[np.ndarray[Any, Any]], wanted: Sequence[np.ndarray[Any, Any]]) -> str | None:
    """Returns in words how results differ by more than other orders of summing explain; None where they do not."""
    for n, (a, b) in enumerate(zip(found, wanted, strict=True)):
        if b.dtype.kind in "iub":
            if not np.array_equal(a, b):
                return f"output {n} has other numbers"
            continue
        x, y = np.asarray(a, np.float64), np.asarray(b, np.float64)
        if not np.array_equal(np.isfinite(x), np.isfinite(y)):
            return f"output {n} is not finite in other places"
        inside = np.isfinite(y)
        scale, error = np.abs(y[inside]).max(initial=0.0), np.abs(x[inside] - y[inside]).max(initial=0.0)
        if error > max(LARGEST_ERROR, ROUNDINGS * float(ml_dtypes.finfo(b.dtype).eps)) * scale:
            return f"output {n} differs by {error:.3g}, where its largest number is {scale:.3g}"
    return None


def _medians(rows: Sequence[Sequence[int]]) -> tuple[float, ...]:
    return tuple([1e-9 * median(column) for column in zip(*rows, strict=True)])
