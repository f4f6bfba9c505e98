"""How fast this machine is, told by a fixed amount of work: limits of time hold where it takes what it was to take."""

from __future__ import annotations

import gc
from collections.abc import Callable
from math import inf
from time import process_time
from typing import Final

YARDSTICK_S: Final = 0.0125
"""Seconds that the work takes on the machine that limits are made for."""


def slowness() -> float:
    """Returns how many times longer than on that machine the same takes here; 1 on a faster one."""
    return max(1.0, min(timed(_work) for _ in range(3)) / YARDSTICK_S)


def share(limit: float, run: Callable[[], object], turns: int = 8) -> float:
    """Returns the part of *limit*, seconds on that machine, that *run* takes: the least of some turns, up to the first below 1.

    In each turn the yardstick is read before and after, and the faster reading counts: neither what disturbs one turn, nor
    what slows the machine down for a while, is taken for the time that *run* needs.
    """
    least = inf
    for _ in range(turns):
        before = slowness()
        taken = timed(run)
        least = min(least, taken / (limit * min(before, slowness())))
        if least < 1:
            break
    return least


def least_seconds(run: Callable[[], object], enough: float, turns: int = 8) -> float:
    """Returns the processor seconds of *run* on this machine: the least of some turns, up to the first below *enough*."""
    least = inf
    for _ in range(turns):
        start = process_time()
        run()
        least = min(least, process_time() - start)
        if least < enough:
            break
    return least


def timed(run: Callable[[], object]) -> float:
    """Returns the seconds of processor time that *run* takes, the collector of garbage aside."""
    gc.collect()
    gc.disable()
    try:
        start = process_time()
        run()
        return process_time() - start
    finally:
        gc.enable()


def _work() -> dict[int, object]:
    """A fixed amount of work in plain Python."""
    made: dict[int, object] = {}
    for n in range(100_000):
        made[n & 1023] = (n, made.get((n * 7) & 1023))
        if n % 3 == 0:
            made[n & 1023] = None
    return made
