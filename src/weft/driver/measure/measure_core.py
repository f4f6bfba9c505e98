"""Measures the facts of this machine's processor that a row of `targets.cores` has, with generated code, in a few seconds.

Each fact is rounded to coarse steps, since it is part of every key of the cache: rates and latencies to whole numbers, loads to
halves, speeds to powers of two and once and a half those. A fact that was measured before stays, unless two measurements in turn
say that it is clearly another.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from dataclasses import asdict, replace
from functools import cached_property
from typing import Any, Final

from weft.driver.measure.bandwidth import MOST_DRAM_BYTES, ReadBandwidth, l3_buffer
from weft.driver.measure.core_timing import (
    cycles_per_second,
    fma_latency,
    fma_rate,
    fork_cycles,
    forwarding_latency,
    loads_rate,
)
from weft.targets import (
    LEVELS,
    WIDE,
    KnownCore,
    Target,
    cache_sizes,
    can_run,
    cpu,
    cpuinfo,
    processor_name,
    unmeasured_core,
    usable_cores,
)

CACHE_SAMPLE: Final = 16 << 20
DRAM_BYTES: Final = 96 << 20
"""Bytes of a reading of a cache, and the fewest of a buffer in memory, which is twice the third-level cache where it can be."""

CACHE_REPEATS: Final = 25
LEAST_REPEATS: Final = 8
DRAM_REPEATS: Final = 4
"""How often each is read, a cache less often where a sample is longer; the best counts, for a disturbance only ever slows reading
down."""

DISTANCE: Final = 4096
"""Bytes that software prefetch is tried at: 1 KB is too late, 16 KB too early (Emerald Rapids, docs/design/0014)."""

SMALLEST_GAIN: Final = 1.15
"""How many times as fast a stream from memory must get by software prefetch for that to pay where all is used once."""

SELDOM_USED, OFTEN_USED = 1, 4
"""`Core.read_ahead_uses` where prefetch pays for a stream by itself, and where it does not (Zen 4, docs/design/0014)."""

SATURATED_SLOWDOWN: Final = 1.5
"""`Core.broadcast_slowdown` where multiply-adds take all loads of a cycle (Emerald Rapids, docs/design/0021)."""

LEAST_OF_L3_SPEED: Final = 2 / 3
"""The part of the third level's speed at which a buffer is read that a program's share of it holds.

Half of the cache is read at a quarter to a half of it where neighbours fill the rest (Zen 3, docs/design/0026).
"""

STEP: Final = 1.45
"""The ratio beyond which a speed is another than that measured before."""

FACTS: Final = (
    "fma_per_cycle",
    "wide_fma_per_cycle",
    "fma_latency",
    "loads_per_cycle",
    "forwarding_latency",
    "wide_broadcast_slowdown",
    "l2_speed",
    "l3_speed",
    "memory_speed",
    "l3_share",
    "read_ahead_uses",
    "fork_cycles",
    "wake_cycles",
)
"""The facts that are measured; of the others of a row, those that cores have in common stand (docs/design/0026)."""

WAKE_TIMES_FORK: Final = 4
"""`Core.wake_cycles` as a multiple of `Core.fork_cycles`: 8192 and 2048 on Zen 4 (docs/design/0034).

It is not measured, since another thread comes in time only where a second core is idle.
"""

MOST_FORK_CYCLES: Final = 1 << 13
"""A larger figure is a machine too busy to tell."""


def measure_core(before: KnownCore | None = None, step: Callable[[int, int], object] | None = None) -> KnownCore:
    """Returns the facts of this processor; those close to the values measured *before* stay as they are.

    *step* is called with how many facts are measured, and of how many.
    """
    measuring = _Measuring(before)
    facts: dict[str, Any] = {}
    for n, name in enumerate(FACTS):
        if step is not None:
            step(n, len(FACTS))
        facts[name] = getattr(measuring, name)
    if step is not None:
        step(len(FACTS), len(FACTS))
    if before is not None:
        facts = confirmed(before, facts, lambda: _Measuring(before))
    source = f"{processor_name() or 'unnamed processor'}, {time.strftime('%Y-%m-%d')}, weft doctor --calibrate"
    return replace(unmeasured_core(cpuinfo()), source=source, **facts)


def confirmed(before: KnownCore, facts: dict[str, Any], anew: Callable[[], object]) -> dict[str, Any]:
    """Returns *facts*, with those that are not as *before* measured once more: a neighbour seldom disturbs both measurements.

    *anew* returns an object whose attributes of the facts' names measure them, and is called if any is not as before.
    """
    others = [name for name, value in facts.items() if value != getattr(before, name)]
    again = anew() if others else None
    return {**facts, **{name: getattr(again, name) for name in others}}


class _Measuring:
    """The facts of this processor, each measured when it is first asked for."""

    def __init__(self, before: KnownCore | None) -> None:
        self.before: dict[str, Any] = {} if before is None else asdict(before)
        self.unmeasured = unmeasured_core(cpuinfo())
        self.widest = cpu()
        self.narrow = _at_most(256)
        self.hertz = cycles_per_second(self.widest)
        self.reading = ReadBandwidth(self.widest)

    @cached_property
    def fma_per_cycle(self) -> int:
        return self._whole("fma_per_cycle", fma_rate(self.narrow, self.hertz))

    @cached_property
    def wide_fma_per_cycle(self) -> int:
        if self.widest.isa.vector_bits < WIDE:
            return self.fma_per_cycle
        return self._whole("wide_fma_per_cycle", fma_rate(self.widest, self.hertz))

    @cached_property
    def fma_latency(self) -> int:
        return self._whole("fma_latency", fma_latency(self.narrow, self.hertz))

    @cached_property
    def loads_per_cycle(self) -> float:
        """Vectors as wide as the core's units, in halves: a core that shares its ports with another one's thread does 1.3."""
        halves = self.wide_fma_per_cycle < self.fma_per_cycle
        rate = loads_rate(self.narrow if halves else self.widest, self.hertz)
        return half(rate, self.before.get("loads_per_cycle"))

    @cached_property
    def forwarding_latency(self) -> int:
        through = forwarding_latency(self.narrow, self.hertz)
        return self._whole("forwarding_latency", through - self.fma_latency)

    @cached_property
    def fork_cycles(self) -> int:
        if usable_cores() < 2:
            return self.unmeasured.fork_cycles
        measured = max(1.0, fork_cycles(self.narrow, self.hertz))
        return min(MOST_FORK_CYCLES, round(coarse(measured, self.before.get("fork_cycles"))))

    @cached_property
    def wake_cycles(self) -> int:
        return WAKE_TIMES_FORK * self.fork_cycles

    @cached_property
    def wide_broadcast_slowdown(self) -> float:
        busy = self.wide_fma_per_cycle > 1 and self.loads_per_cycle < self.wide_fma_per_cycle + 1
        return SATURATED_SLOWDOWN if busy else 1.0

    @cached_property
    def l2_speed(self) -> float:
        return self._speed("l2_speed", self._rate(self.widest.caches.l2 * 3 // 4))

    @cached_property
    def l3_speed(self) -> float:
        return self._speed("l3_speed", self._rate(l3_buffer(self.widest.caches)))

    @cached_property
    def memory_speed(self) -> float:
        return self._speed("memory_speed", self._memory_rate)

    @cached_property
    def l3_share(self) -> int:
        """The largest buffer that is read at most of the third level's speed, as a power of two."""
        whole = cache_sizes().get(3, self.widest.caches.l3)
        before = self.before.get("l3_share")
        size = 1 << (whole.bit_length() - 1)
        while size > 4 * self.widest.caches.l2 and self._rate(size // 2) < self._least_l3_rate(size // 2, before):
            size //= 2
        return size // 2 if size * 2 <= whole else NO_LIMIT

    def _least_l3_rate(self, nbytes: int, before: int | None) -> float:
        """Returns the bytes a cycle at which a buffer counts as held in the third level: fewer for one that did *before*."""
        if before is None:
            return LEAST_OF_L3_SPEED * self.l3_speed
        return LEAST_OF_L3_SPEED * self.l3_speed * (0.8 if nbytes <= before else 1.2)

    @cached_property
    def read_ahead_uses(self) -> int:
        reading = ReadBandwidth(self.widest, DISTANCE, self.reading.buffer)
        asking = reading.rate(self._memory, DRAM_REPEATS, self._memory) * 1e9 / self.hertz
        was = self.before.get("read_ahead_uses")
        least = SMALLEST_GAIN if was is None else SMALLEST_GAIN * (0.92 if was == SELDOM_USED else 1.08)
        return SELDOM_USED if asking >= least * self._memory_rate else OFTEN_USED

    @cached_property
    def _memory(self) -> int:
        return max(DRAM_BYTES, min(2 * self.widest.caches.l3, MOST_DRAM_BYTES))

    @cached_property
    def _memory_rate(self) -> float:
        return self.reading.rate(self._memory, DRAM_REPEATS, self._memory) * 1e9 / self.hertz

    def _rate(self, nbytes: int) -> float:
        """Returns how many bytes a cycle are read of a buffer of *nbytes* that was read before."""
        sample = max(CACHE_SAMPLE, nbytes)
        repeats = max(LEAST_REPEATS, CACHE_REPEATS * CACHE_SAMPLE // sample)
        return self.reading.rate(nbytes, repeats, sample) * 1e9 / self.hertz

    def _whole(self, name: str, value: float) -> int:
        return whole(value, self.before.get(name))

    def _speed(self, name: str, value: float) -> float:
        return coarse(value, self.before.get(name))


NO_LIMIT: Final = 1 << 40
"""`KnownCore.l3_share` of a third level that is as large as the system says."""


def whole(value: float, before: float | None = None) -> int:
    """Returns *value* as a whole number, at least one: *before* if it is within three quarters of that."""
    if before is not None and abs(value - before) <= 0.75:
        return int(before)
    return max(1, round(value))


OVERSHOOT: Final = 0.1
"""Loads a cycle by which a measured rate may exceed a multiple of a half and still be rounded to it."""

STAYS_BELOW, STAYS_ABOVE = 0.75, 0.25
"""Loads a cycle below and above the rate measured before within which that stays.

A neighbour on the core's other thread moves the measured rate by as much within a second (1.29 to 1.73 on Zen 3).
"""


def half(value: float, before: float | None = None) -> float:
    """Returns *value* rounded up to a half, as a loop falls a little short of the rate: *before* if it is close to that."""
    if before is not None and before - STAYS_BELOW <= value <= before + STAYS_ABOVE:
        return before
    return max(0.5, math.ceil(2 * (value - OVERSHOOT)) / 2)


def coarse(value: float, before: float | None = None) -> float:
    """Returns the nearest of 1, 1.5, 2, 3, 4, 6, 8, ...: *before* if *value* is within `STEP` times of that."""
    if before is not None and max(value / before, before / value) <= STEP:
        return before
    power = 2.0 ** math.floor(math.log2(value))
    return min((power, 1.5 * power, 2 * power), key=lambda step: abs(math.log(value / step)))


def _at_most(bits: int) -> Target:
    """Returns this machine held to vectors of no more than *bits* bits."""
    return next(t for name, x in LEVELS.items() if x.vector_bits <= bits and can_run(t := cpu(name)))
