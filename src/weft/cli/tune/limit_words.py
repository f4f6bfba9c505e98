"""How near to the limits of the machine the kernels of a tuned model are: those of its roofline, for one core."""

from __future__ import annotations

from weft.tune.tasks import Task
from weft.tune.tuning_session import TuneReport

NEAR = 0.9
"""The part of its limit from which on tuning can hardly gain anything."""


def part_now(report: TuneReport, task: Task) -> float | None:
    """Returns the part of its limit at which a kernel runs with what was found; None where that was not measured."""
    if task.standing is None:
        return None
    winner = report.winner_of(task)
    return min(1.0, task.standing.share / (1.0 if winner is None else winner.ratio.middle))


def part_of_limit(report: TuneReport) -> tuple[float, float] | None:
    """Returns the part of the limit at which all kernels together run, before and with what was found; None if not measured."""
    placed = [t for t in report.tasks if t.standing is not None and t.seconds > 0]
    if not placed:
        return None
    least = sum(min(1.0, t.standing.share) * t.seconds for t in placed if t.standing is not None)
    before = sum(t.seconds for t in placed)
    after = sum(t.seconds * (1.0 if (w := report.winner_of(t)) is None else w.ratio.middle) for t in placed)
    return least / before, min(1.0, least / after)


def limit_sentence(before: float, after: float) -> str:
    """Returns a sentence about both."""
    rest = "" if after < before + 0.005 else f", and now {after:.0%}"
    told = f"The kernels reached {before:.0%} of what the machine can do for them{rest}"
    return f"{told}; there is little left to gain." if after >= NEAR else f"{told}."
