"""Making a failing case smaller: steps are left out as long as something still fails."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

from tests.schedule.fuzz.cases import Call, Failure, Watched, repeat
from tests.schedule.fuzz.checking import check_everything
from tests.schedule.fuzz.computations import computation
from tests.schedule.programs import Case

from weft.loop import Program
from weft.support.errors import ScheduleError


def shrunk(failure: Failure, check: Callable[[Case, Program], None] = check_everything) -> Failure:
    """The failure that is left when no step can be left out any more."""
    best = _attempt(failure, failure.calls, check)
    if best is None:
        return failure
    n = len(best.calls) - 1
    while n >= 0:
        fewer = _attempt(best, (*best.calls[:n], *best.calls[n + 1 :]), check)
        best = fewer or best
        n = min(n, len(best.calls)) - 1 if fewer is None else len(best.calls) - 1
    return best


def _attempt(failure: Failure, calls: Sequence[Call], check: Callable[[Case, Program], None]) -> Failure | None:
    """The failure that *calls* alone lead to; None if they are not possible, or right."""
    case = computation(failure.family, failure.seed)
    s = Watched(case.program)
    try:
        repeat(s, calls)
        check(case, s.program)
    except ScheduleError:
        return None
    except Exception as e:
        made = tuple(calls[: len(s.calls)])
        return replace(failure, error=f"{type(e).__name__}: {e}", calls=made, trace=str(s.trace))
    return None
