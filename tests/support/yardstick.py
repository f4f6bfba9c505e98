"""How fast this machine is, told by a fixed amount of work: limits of time hold where it takes what it was to take."""

from __future__ import annotations

import gc
from collections.abc import Callable
from time import process_time
from typing import Final

YARDSTICK_S: Final = 0.0125
"""Seconds that the work takes on the machine that limits are made for."""


def slowness() -> float:
    """Returns how many times longer than on that machine the same takes here; 1 on a faster one."""
    return max(1.0, min(timed(_work) for _ in range(3)) / YARDSTICK_S)


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
