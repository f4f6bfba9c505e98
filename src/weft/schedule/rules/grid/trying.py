"""Steps tried on a copy of a program: whether they are legal, and whether the planner may take the program that they make."""

from __future__ import annotations

from collections.abc import Callable

from weft.cost import Planner
from weft.loop import Program
from weft.schedule.legality.trust import proving
from weft.schedule.schedule import Schedule
from weft.support.errors import ScheduleError


def can_take(program: Program, steps: Callable[[Schedule], None], p: Planner) -> bool:
    """Tells whether *steps* may be carried out on a program: one may be refused, or code for the result."""

    def make() -> Program:
        trial = Schedule(program)
        with proving():
            steps(trial)
        return trial.program

    try:
        return p.takes(make)
    except ScheduleError:
        return False
