"""How long the cycles of this machine's core are, and how many of them its instructions take, measured by generated code."""

from __future__ import annotations

from typing import Final

import numpy as np

from weft.driver.function import NativeFunction
from weft.driver.measure.bandwidth import ReadBandwidth
from weft.driver.measure.peak import Peak
from weft.loop import parse_program
from weft.support.dtypes import f32
from weft.targets import Target

STEPS: Final = 40_000
"""Iterations of a timed call: about half a millisecond."""

_PAIRS: Final = 16
_CHAIN: Final = f"""
def chain(x: i64[1], a: i64, b: i64, steps: i64):
    value = alloc("register", i64[1])
    value[0] = x[0]
    for step in range(0, steps):
        for i in unrolled(0, {_PAIRS}):
            value[0] = (value[0] ^ a) + b
    x[0] = value[0]
"""
"""Integer operations each of which waits for the one before: one cycle each on every core that there is."""


def cycles_per_second(target: Target, repeats: int = 20) -> float:
    """Returns how many cycles of the core pass in a second of processor time."""
    chain = NativeFunction(parse_program(_CHAIN), target)
    best = min(chain.time(np.ones(1, np.int64), 5, 3, STEPS, repeats=1) for _ in range(repeats))
    return 2 * _PAIRS * STEPS / best


def fma_rate(target: Target, hertz: float, repeats: int = 20) -> float:
    """Returns how many multiply-adds of full vectors the core does in a cycle."""
    operations = Peak(f32, target).rate(repeats=repeats, steps=STEPS) * 1e9
    return operations / (2 * target.lanes(32) * hertz)


def fma_latency(target: Target, hertz: float, repeats: int = 20) -> float:
    """Returns the cycles from one multiply-add to the next that needs its result."""
    operations = Peak(f32, target, chains=1).rate(repeats=repeats, steps=STEPS) * 1e9
    return hertz * 2 * target.lanes(32) / operations


def loads_rate(target: Target, hertz: float, repeats: int = 20) -> float:
    """Returns how many vectors the core loads from its first-level cache in a cycle."""
    rate = ReadBandwidth(target).rate(target.caches.l1 // 2, repeats, sample=8 << 20) * 1e9
    return rate / (target.isa.vector_bits // 8 * hertz)


_FORWARDED: Final = f"""
def forwarded(x: f32[1], mask: i64, steps: i64):
    for step in range(0, steps):
        for i in unrolled(0, {_PAIRS}):
            x[(step + i) & mask] = x[(step + i) & mask] + f32(1.0)
"""
"""Additions to one element of memory, that the compiler can't tell to be one: each loads the value that the last stored."""


def forwarding_latency(target: Target, hertz: float, repeats: int = 20) -> float:
    """Returns the cycles from one addition to an element of memory to the next, those of an addition included."""
    function, steps = NativeFunction(parse_program(_FORWARDED), target), STEPS // 8
    best = min(function.time(np.zeros(1, np.float32), 0, steps, repeats=1) for _ in range(repeats))
    return hertz * best / (_PAIRS * steps)


_TASKS: Final = """
def tasks(x: f32[64]):
    for i in KIND(0, 2):
        x[i * 32] = x[i * 32] + f32(1.0)
"""
"""Two pieces of next to no work."""


def fork_cycles(target: Target, hertz: float, repeats: int = 200) -> float:
    """Returns the cycles that a parallel loop takes who begins it, beside its work, whether or not another comes."""
    x = np.zeros(64, np.float32)
    functions = [NativeFunction(parse_program(_TASKS.replace("KIND", k)), target) for k in ("parallel", "range")]
    shared, alone = [min(f.time(x, threads=2, repeats=9) for _ in range(repeats // 9)) for f in functions]
    return hertz * (shared - alone)
