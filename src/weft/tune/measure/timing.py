"""The time of kernels of the processor, which find the caches as their model leaves them."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property, lru_cache
from itertools import accumulate, pairwise
from statistics import median
from typing import Any, TypeAlias

import numpy as np

from weft.codegen import compile_program, link_here
from weft.loop import parse_program
from weft.native import _rt
from weft.targets import Target
from weft.tune.measure.jobs import Limits
from weft.tune.measure.turns import TurnTimer

Call: TypeAlias = tuple[_rt.Image, int, list[np.ndarray[Any, Any]]]
"""A kernel's code, where it begins in it, and its buffers."""


class Timer(TurnTimer[Call]):
    """Times kernels that take *sizes* besides their buffers, with *threads* threads and within *limits*."""

    def __init__(self, sizes: Sequence[int], threads: int, limits: Limits, target: Target) -> None:
        super().__init__(limits)
        self.sizes, self.threads = sizes, threads
        self._target = target

    def first(self, call: Call) -> float:
        """Calls a kernel once; returns the seconds that it took."""
        ((taken,),) = self.times([call], 1)
        return taken

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
        """Returns the calls before *call*, so that it finds the caches as its model leaves them."""
        if not self.limits.evict:
            return []
        used = [b for n, b in enumerate(call[2]) if n not in self.limits.weights]
        return [_sweep(self._target, self.limits.evict), *[reading(self._target, b) for b in used if b.nbytes]]

    @cached_property
    def _cost(self) -> float:
        """The nanoseconds between two readings of the clock with nothing between them."""
        return clock_cost(processor_time=self.threads == 1)


@lru_cache(maxsize=2)
def clock_cost(*, processor_time: bool) -> float:
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
