"""Random schedules for grids: a slice by default, a thousand that run in the slow run, interpreted and with OpenCL."""

from __future__ import annotations

from dataclasses import replace

import pytest
from tests.lower.threaded import barriers, without_barrier
from tests.schedule.fuzz.grid_checking import OnDevice, check_grids, check_run, grid_case
from tests.support.devices import needs_opencl

from weft.codegen.interp.threads.races import RaceError

CAMPAIGN, PARTS, CASES = 1, 20, 50
DRAWN = 75
"""Schedules that are drawn at most for the cases of a part, of which lowering refuses some: one of eight, on average."""
NEEDED = (14, 17, 119)
"""Cases that need each of their barriers; a loop of the last binds what it reads around the stores that change it."""


def test_a_slice_interpreted() -> None:
    tally = check_grids(CAMPAIGN, range(25), with_opencl=False)
    assert tally.ran > 18
    assert tally.threaded > 10
    assert tally.with_barriers > 3


@needs_opencl
def test_a_slice_with_opencl() -> None:
    assert check_grids(CAMPAIGN, range(40, 48), with_opencl=True).ran > 5


@needs_opencl
@pytest.mark.slow
@pytest.mark.parametrize("part", range(PARTS))
def test_a_thousand(part: int) -> None:
    numbers = range(part * DRAWN, (part + 1) * DRAWN)
    tally = check_grids(CAMPAIGN, numbers, with_opencl=True, wanted=CASES)
    assert tally.ran == CASES, tally.reasons


def test_cases_are_repeatable() -> None:
    first, second = (grid_case(CAMPAIGN, 3) for _ in range(2))
    assert str(first.flat) == str(second.flat)


@pytest.mark.parametrize("number", NEEDED)
def test_a_missing_barrier_is_found(number: int) -> None:
    c = grid_case(CAMPAIGN, number)
    assert c.flat is not None
    check_run(c)
    assert barriers(c.flat)
    for n in range(len(barriers(c.flat))):
        with pytest.raises(RaceError):
            check_run(replace(c, flat=without_barrier(c.flat, n)))


@needs_opencl
def test_wrong_results_are_found() -> None:
    c = grid_case(CAMPAIGN, 0)
    wrong = replace(c, case=replace(c.case, oracle=lambda *given: [x + 1 for x in c.case.oracle(*given)]))
    with pytest.raises(AssertionError, match="Arrays are not equal"):
        check_run(wrong)
    on = OnDevice([c])
    check_run(c, on.launch_of(0))
    with pytest.raises(AssertionError, match="Arrays are not equal"):
        check_run(wrong, on.launch_of(0))
    on.device.close()
