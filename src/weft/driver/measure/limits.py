"""All limits of this machine in one table: the arithmetic of a core, and how fast each level of memory is read.

Williams, Waterman and Patterson, "Roofline: an insightful visual performance model for multicore architectures" (2009):
a kernel runs no faster than its arithmetic at the one limit, and no faster than its bytes at the other.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from threading import Barrier
from typing import Final

from weft.driver.measure.bandwidth import MOST_DRAM_BYTES, ReadBandwidth, l3_buffer
from weft.driver.measure.matrix_peak import MatrixPeak
from weft.driver.measure.peak import Peak
from weft.driver.progress import Progress
from weft.support.dtypes import DType, bf16, f32, u8
from weft.support.errors import LoweringError
from weft.targets import LEVELS, Target, can_run, cpu, host

ROUNDS: Final = 3
"""How often everything is measured, one after the other; the best counts, for a disturbance only ever lowers a rate."""

DRAM_REPEATS, CACHE_REPEATS = 10, 50
"""Readings of a round: of caches they are short, and whoever shares the core spoils many."""

_NAMES: Final = {f32: "f32 multiply-add", bf16: "bf16 dot product", u8: "int8 dot product"}


@dataclass(frozen=True)
class Limit:
    """One limit: of one core, and of all cores together; *unit* is GFLOP/s, GOP/s or GB/s, *nbytes* is read (0: none)."""

    name: str
    unit: str
    one_core: float
    all_cores: float
    nbytes: int = 0


@dataclass(frozen=True)
class Quantity:
    """Something to measure: *rate* returns it for the core that calls it; arithmetic is that of products of *factors*."""

    name: str
    unit: str
    rate: Callable[[], float]
    nbytes: int = 0
    factors: DType | None = None


def measure_limits(target: Target | None = None, rounds: int = ROUNDS, progress: Progress | None = None) -> list[Limit]:
    """Returns the limits of this machine; *target* says how wide its vectors may be. Takes some seconds."""
    chosen = target if target is not None else host()
    quantities = [*arithmetic(chosen), *memory(chosen)]
    one, every = [0.0] * len(quantities), [0.0] * len(quantities)
    for r in range(rounds):
        for n, q in enumerate(quantities):
            if progress is not None:
                progress("measure", r * len(quantities) + n, rounds * len(quantities))
            one[n] = max(one[n], q.rate())
            every[n] = max(every[n], on_all_cores(q.rate))
    return [Limit(q.name, q.unit, one[n], every[n], q.nbytes) for n, q in enumerate(quantities)]


def arithmetic(target: Target) -> Iterator[Quantity]:
    """Gives the multiply-adds of *target*, in its own vectors and in shorter ones, and its products of narrow factors."""
    for level in [x for x in LEVELS.values() if x.vector_bits < target.isa.vector_bits and x.fma]:
        narrow = next(cpu(name) for name, x in LEVELS.items() if x is level)
        if can_run(narrow):
            yield _peak(f32, narrow)
    for dtype in (f32, bf16, u8):
        try:
            yield _peak(dtype, target)
        except LoweringError:  # it has no instruction for these
            continue
    for dtype, kind in ((bf16, "bf16"), (u8, "int8")):
        with suppress(LoweringError):  # there are no matrix registers
            unit = "GOP/s" if dtype is u8 else "GFLOP/s"
            yield Quantity(f"{kind} products of tiles", unit, MatrixPeak(dtype, target).rate, factors=dtype)


def _peak(dtype: DType, target: Target) -> Quantity:
    peak = Peak(dtype, target)
    name = f"{_NAMES[dtype]}, {target.isa.vector_bits}-bit vectors"
    return Quantity(name, "GOP/s" if dtype is u8 else "GFLOP/s", peak.rate, factors=dtype)


def memory(target: Target) -> Iterator[Quantity]:
    """Gives the levels of memory, each read in a buffer that fits it well and the level before it not."""
    reading = ReadBandwidth(target)
    levels = {"L1": target.caches.l1 // 2, "L2": target.caches.l2 * 3 // 4, "L3": l3_buffer(target.caches)}
    for name, nbytes in {**levels, "DRAM": MOST_DRAM_BYTES}.items():
        repeats = DRAM_REPEATS if name == "DRAM" else CACHE_REPEATS
        yield Quantity(f"{name} read", "GB/s", partial(reading.rate, nbytes, repeats), nbytes)


def on_all_cores(rate: Callable[[], float]) -> float:
    """Returns the sum of the results of *rate* on each core that this process may use, all running at once."""
    cores = sorted(os.sched_getaffinity(0))
    together = Barrier(len(cores))

    def measure(core: int) -> float:
        os.sched_setaffinity(0, {core})  # of this thread alone, which ends with the pool
        together.wait()
        return rate()

    with ThreadPoolExecutor(len(cores)) as pool:
        return sum(pool.map(measure, cores))
