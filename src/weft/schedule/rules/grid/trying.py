"""Steps tried on a copy of a schedule: whether they are legal, and whether the planner may take the program that they make."""

from __future__ import annotations

from collections.abc import Callable
from typing import Generic, TypeVar

from weft.cost import Decision, Planner
from weft.loop import Program
from weft.schedule.legality.trust import proving
from weft.schedule.schedule import Schedule
from weft.support.errors import ScheduleError

D = TypeVar("D", bound=Decision)


class Trials(Generic[D]):
    """Carries out decisions on a schedule by *steps*; those that were tried on a copy of it, by taking the copy over."""

    def __init__(self, s: Schedule, p: Planner, steps: Callable[[Schedule, D], None]) -> None:
        self._schedule = s
        self._planner = p
        self._steps = steps
        self._tried: tuple[D, Schedule] | None = None

    def can_take(self, decision: D) -> bool:
        """Tells whether a *decision* may be carried out: a step may be refused, or code for the result."""

        def make() -> Program:
            trial = self._schedule.copy()
            with proving():
                self._steps(trial, decision)
            self._tried = (decision, trial)
            return trial.program

        try:
            return self._planner.takes(make)
        except ScheduleError:
            return False

    def carry_out(self, decision: D) -> None:
        """Carries out a *decision*; raises `ScheduleError` if it was not tried, and one of its steps is refused."""
        if self._tried is not None and self._tried[0] == decision:
            self._schedule.become(self._tried[1])
        else:
            self._steps(self._schedule, decision)
