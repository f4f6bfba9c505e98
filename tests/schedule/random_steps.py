"""Random schedule steps for tests that compile for a CPU, too: those of the fuzzing, without the threads of a device."""

from __future__ import annotations

import random
from contextlib import suppress

from tests.schedule.fuzz.steps import STEPS

from weft.schedule import Schedule
from weft.support.errors import ScheduleError

THREADS = ("bind", "vthread", "cross_thread_reduce")
_CHOSEN = {name: step for name, step in STEPS.items() if name not in THREADS}


def step(s: Schedule, r: random.Random) -> bool:
    """Tries one step; tells whether the program changed. Any error but `ScheduleError` is a bug and is let through."""
    chosen = r.choices(list(_CHOSEN.values()), [c.weight for c in _CHOSEN.values()])[0]
    before = s.program
    with suppress(ScheduleError):
        chosen.move(s, r)
    return s.program is not before
