"""Times a candidate in turns with the incumbent, until the interval of their ratio is narrow enough or its time is over."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property, lru_cache
from itertools import accumulate, pairwise
from math import ceil
from statistics import median
from time import thread_time
from typing import Any, Final, TypeAlias

import numpy as np

from weft.codegen import compile_program, link_here
from weft.loop import parse_program
from weft.native import _rt
from weft.targets import Target
from weft.tune.measure.jobs import Limits, Measured
from weft.tune.measure.ratio_interval import is_clearly_worse, is_enough, median_interval, ratios

Call: TypeAlias = tuple[_rt.Image, int, list[np.ndarray[Any, Any]]]
"""A kernel's code, where it begins in it, and its buffers."""

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


class Timer:
    """Times kernels that take *sizes* besides their buffers, with *threads* threads and within *limits*."""

    def __init__(self, sizes: Sequence[int], threads: int, limits: Limits, target: Target) -> None:
        self.sizes, self.threads, self.limits = sizes, threads, limits
        self._target = target

    def times(self, calls: Sequence[Call], repeats: int, number: int = 1) -> list[list[float]]:
        """Returns the seconds of each of *calls*, called *number* times one after another, for each of *repeats* turns."""
        before = [self.before(call) for call in calls]
        in_turn = [c for call, others in zip(calls, before, strict=True) for c in (*others, call)]
        stamps = _rt.time_in_turn(
            in_turn,
            repeats,
            number=number,
            scalars=self.sizes,
            threads=self.threads,
            processor_time=self.threads == 1,
        )
        places = [n - 1 for n in accumulate([len(others) + 1 for others in before])]
        return [[max(1.0, row[n + 1] - row[n] - self._cost) / number * 1e-9 for n in places] for row in stamps]

    def before(self, call: Call) -> list[Call]:
        """Returns what is called before *call*, so that it finds the caches as its model leaves them."""
        if not self.limits.evict:
            return []
        used = [b for n, b in enumerate(call[2]) if n not in self.limits.weights]
        return [_sweep(self._target, self.limits.evict), *[reading(self._target, b) for b in used if b.nbytes]]

    @cached_property
    def _cost(self) -> float:
        """The nanoseconds between two readings of the clock with nothing between them."""
        return clock_cost(self.threads == 1)

    def measure(self, candidate: Call, incumbent: Call | None, first: float) -> Measured:
        """Returns the times of *candidate*, whose first call took *first* seconds, beside those of *incumbent*."""
        number = 1 if self.limits.evict else max(1, ceil(self.limits.between / first))
        if incumbent is None:
            return self._in_turns([candidate], number)
        if first > LONG:
            beside = [row[0] for row in self.times([incumbent], 2)]
            if is_clearly_worse([first], beside, COLD * self.limits.worse):
                return self._result([first], beside, is_early=True)
        return self._in_turns([candidate, incumbent], number)

    def _in_turns(self, calls: Sequence[Call], number: int) -> Measured:
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


@lru_cache(maxsize=2)
def clock_cost(processor_time: bool) -> float:
    """Returns the nanoseconds that one reading of a clock takes."""
    stamps = [row[0] for row in _rt.time_in_turn([], 64, processor_time=processor_time)]
    return median(b - a for a, b in pairwise(stamps))


@lru_cache(maxsize=4)
def _sweep(target: Target, nbytes: int) -> Call:
    """Returns the call of a kernel that reads *nbytes* bytes that nothing else uses.

    They are written before: Linux shows memory that never was as one page of zeros, which evicts nothing.
    """
    return reading(target, np.ones(nbytes, np.uint8))


def reading(target: Target, buffer: np.ndarray[Any, Any]) -> Call:
    """Returns the call of a kernel that reads an element of each cache line of *buffer*."""
    image, offset = _reader(target, max(1, buffer.nbytes // target.caches.line))
    return image, offset, [buffer, np.zeros(1, np.float32)]


@lru_cache(maxsize=32)
def _reader(target: Target, lines: int) -> tuple[_rt.Image, int]:
    step = target.caches.line // 4
    text = (
        f"def read(x: f32[{lines * step}], found: f32[1]):\n    for i in range(0, {lines}):\n"
        f"        found[0] = max(found[0], x[i * {step}])\n"
    )
    image = link_here([compile_program(parse_program(text), target)], target)
    return _rt.Image(image.code), image.symbols["read"]
