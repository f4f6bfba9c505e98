"""A planner for kernels whose cheapest plan lowering refused: it asks whether lowering takes the program of another one."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from weft.loop import Program
from weft.support.errors import LoweringError

MOST_REFUSED: Final = 12
"""So many programs are refused before no more are tried: each takes as long as a kernel, and one without tiles needs no trial."""


class LoweringTrial:
    """Tells whether *lowered* makes code of a program; after too many refusals it answers no."""

    def __init__(self, lowered: Callable[[Program], object]) -> None:
        self._lowered = lowered
        self._refused = 0

    def __call__(self, make: Callable[[], Program]) -> bool:
        """Tells whether code can be made of the program that *make* returns; raises `ScheduleError` where that does."""
        if self._refused >= MOST_REFUSED:
            return False
        try:
            self._lowered(make())
        except LoweringError:
            self._refused += 1
            return False
        return True
