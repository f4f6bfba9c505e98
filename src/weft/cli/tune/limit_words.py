"""How near to the limits of the machine the kernels of a tuned model are: those of its roofline, for one core."""

from __future__ import annotations

from typing import Final

from weft.tune.tasks import Task
from weft.tune.tuning_session import TuneReport

LITTLE_LEFT: Final = 0.9
"""The part of its limit from which on tuning can hardly gain anything."""


def part_now(report: TuneReport, task: Task) -> float | None:
    """Returns the part of its limit at which a kernel runs with its winner; None where that was not measured."""
    return None if task.part_of_limit is None else min(1.0, task.part_of_limit / _time_left(report, task))


def part_of_limit(report: TuneReport) -> tuple[float, float] | None:
    """Returns the part of the limit at which all kernels together run, before and with the winners; None if not measured."""
    placed = [(t, part) for t in report.tasks if (part := t.part_of_limit) is not None and t.seconds > 0]
    if not placed:
        return None
    least = sum(part * t.seconds for t, part in placed)
    before = sum(t.seconds for t, _ in placed)
    after = sum(t.seconds * _time_left(report, t) for t, _ in placed)
    return least / before, min(1.0, least / after)


def _time_left(report: TuneReport, task: Task) -> float:
    """Returns the part of its time before that a kernel takes now."""
    winner = report.winner_of(task)
    return 1.0 if winner is None else winner.ratio.middle


def limit_sentence(before: float, after: float) -> str:
    """Returns a sentence about both."""
    rest = "" if after < before + 0.005 else f", and now {after:.0%}"
    told = f"The kernels reached {before:.0%} of what the machine can do for them{rest}"
    return f"{told}; there is little left to gain." if after >= LITTLE_LEFT else f"{told}."
