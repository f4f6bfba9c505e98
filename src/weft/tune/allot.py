"""Which task the next seconds go to: the one whose tuning is expected to save most of a run.

The gain of a task is what its last seconds won, discounted by age, or what a task that nobody looked at may win, whichever is
more, times its share of a run (after the gradient scheduler of Ansor; Zheng et al., 2020, section 6).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

HOPE: Final = 0.2
"""The part of its time that a task is expected to lose before it was ever tuned."""

FADING: Final = 0.5
"""How much less a task is expected to win in a slice than in the slice before."""


@dataclass
class Progress:
    """What is known of a task: the seconds of its calls in a run, and the part of them that each slice saved."""

    seconds: float
    slices: list[float]
    is_done: bool = False

    @property
    def expected(self) -> float:
        """The seconds of a run that the next slice is expected to save."""
        if self.is_done:
            return 0.0
        hope = HOPE * FADING ** len(self.slices)
        recent = max((won * FADING ** (n + 1) for n, won in enumerate(reversed(self.slices))), default=0.0)
        return self.seconds * max(hope, recent)


def next_task(progress: Sequence[Progress]) -> int | None:
    """Returns the number of the task that the next slice goes to; None where none has anything left to try."""
    best = max(range(len(progress)), key=lambda n: progress[n].expected, default=None)
    return best if best is not None and progress[best].expected > 0 else None
