"""The read bandwidth of this machine, measured by generated code: every level of cache, and main memory.

reading = ReadBandwidth()
print(reading.rate(24 << 10), "GB/s from the first-level cache")
"""

from __future__ import annotations

from typing import Any, Final

import numpy as np
import numpy.typing as npt

from weft.driver.function import NativeFunction
from weft.loop import PREFETCH, parse_program
from weft.native import _rt
from weft.support.errors import InputError
from weft.targets import Caches, Target, host

VECTORS: Final = 4
"""Vectors read in each step, each combined into a result of its own: more than ports times latency."""

BYTES_A_SAMPLE: Final = 100_000_000
"""Read in each timed call, in as many passes as that takes: a few milliseconds."""

PAGE: Final = 4 << 10
HUGE_PAGE: Final = 2 << 20
"""The smallest page, and the size from which on a block of memory is in huge pages."""

_PROGRAM: Final = """
def read(x: i32[n * {step}], y: i32[{step}], n: i64, passes: i64):
    for p in range(0, passes):
        seen = alloc("register", i32[{step}])
        for i in unrolled(0, {vectors}):
            seen[ramp(i * {lanes}, 1, {lanes})] = y[ramp(i * {lanes}, 1, {lanes})]
        for k in range(0, n):{prefetch}
            for i_1 in unrolled(0, {vectors}):
                seen[ramp(i_1 * {lanes}, 1, {lanes})] = {combined}
        for i_2 in unrolled(0, {vectors}):
            y[ramp(i_2 * {lanes}, 1, {lanes})] = seen[ramp(i_2 * {lanes}, 1, {lanes})]
"""


MOST_DRAM_BYTES: Final = 512 << 20
"""Bytes of a buffer in memory, however large the third level is said to be: giving more to a process takes the system seconds."""


def l3_buffer(caches: Caches) -> int:
    """Returns the bytes of a buffer that does not fit the second level and is a small part of the third, whoever shares that."""
    return max(3 * caches.l2, min(8 * caches.l2, caches.l3 // 4))


class ReadBuffer:
    """Memory to read: it grows to the largest size that is asked for, and smaller ones are its beginning.

    The system gives pages when they are first written to, which takes longer than a large buffer takes to be read.
    """

    def __init__(self) -> None:
        self._words = np.empty(0, np.int32)

    def words(self, nbytes: int) -> npt.NDArray[np.int32]:
        """Returns the first *nbytes* as words of four bytes.

        They are in huge pages where the system allows it, as a model's weights are: where small pages happen to lie decides how
        well a cache holds them.
        """
        if self._words.nbytes < nbytes:
            self._words = np.empty(0, np.int32)  # before the larger one is asked for
            memory: Any = _rt.Block(max(nbytes, HUGE_PAGE))
            self._words = np.frombuffer(memory, np.int32)
            self._words[:: PAGE // 4] = 1  # pages that nothing was written to would all be the same one
        return self._words[: nbytes // 4]


class ReadBandwidth:
    """A loop of nothing but vector loads, over a buffer that is read again and again.

    Each pass begins and ends as a kernel's loop does: the accumulators are loaded before, and stored after. With *ahead*, each
    step prefetches the data that many bytes further on. The data are the beginning of *buffer*, which several may share.
    """

    def __init__(self, target: Target | None = None, ahead: int = 0, buffer: ReadBuffer | None = None) -> None:
        self.buffer = buffer if buffer is not None else ReadBuffer()
        chosen = target if target is not None else host()
        lanes = chosen.lanes(32)
        self.step = VECTORS * lanes
        part = f"[ramp(i_1 * {lanes}, 1, {lanes})]"
        combined = f"seen{part} | x[ramp(k * {self.step} + i_1 * {lanes}, 1, {lanes})]"
        line = chosen.caches.line // 4
        asked = [f"x.at(k * {self.step} + {ahead // 4 + n})" for n in range(0, self.step if ahead else 0, line)]
        prefetch = "".join([f'\n            call("{PREFETCH}", {x}, 1)' for x in asked])
        source = _PROGRAM.format(step=self.step, vectors=VECTORS, lanes=lanes, combined=combined, prefetch=prefetch)
        self.function = NativeFunction(parse_program(source), chosen)

    def rate(self, nbytes: int, repeats: int = 10, sample: int = BYTES_A_SAMPLE) -> float:
        """Returns the best rate of *repeats* at which one core reads a buffer of *nbytes*, in GB/s of processor time.

        Each repeat reads *sample* bytes, in as many passes as that takes. Raises `InputError` for a buffer that is smaller than a
        step.
        """
        count = nbytes // (4 * self.step)
        if count < 1:
            raise InputError(f"{nbytes} bytes are too few to read", hint=f"use {4 * self.step} or more")
        seen: Any = _rt.Block(4 * self.step)  # whole cache lines, so that a short pass does not end with split stores
        x, y = self.buffer.words(4 * count * self.step), np.frombuffer(seen, np.int32)
        passes = max(1, sample // nbytes)
        best = min(self.function.time(x, y, count, passes, repeats=1) for _ in range(repeats))
        return x.nbytes * passes / best / 1e9
