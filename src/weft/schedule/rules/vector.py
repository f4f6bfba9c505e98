"""Vectorising the innermost of some loops."""

from __future__ import annotations

from collections.abc import Sequence

from weft.schedule.schedule import Schedule
from weft.schedule.state import LoopRef
from weft.support.errors import ScheduleError

MAX_VECTORS = 4
"""How many machine vectors one vectorised loop may span."""


def vectorize_last(s: Schedule, loops: Sequence[LoopRef], lanes: int, shortest: int | None = None) -> list[LoopRef]:
    """Vectorises the last of *loops*, in pieces of *lanes* where it is longer; returns the loops that stay serial.

    A loop that is not longer than half a vector, or is shorter than *shortest*, stays as it is.
    """
    *outer, last = loops
    extent = s.extent(last)
    if extent is not None and extent < (lanes // 2 + 1 if shortest is None else shortest):
        return list(loops)
    if extent is not None and (extent <= lanes or (extent % lanes == 0 and extent <= MAX_VECTORS * lanes)):
        return outer if _vectorize(s, last) else list(loops)
    rest, piece = s.split(last, [None, lanes])
    _vectorize(s, piece)
    return [*outer, rest]


def _vectorize(s: Schedule, loop: LoopRef) -> bool:
    try:
        s.vectorize(loop)
    except ScheduleError:  # the iterations depend on each other: it stays serial
        return False
    return True
