"""Random schedules: each step is refused, or leaves a program that computes the same."""

from __future__ import annotations

import random

import pytest
from tests.schedule.programs import CASES
from tests.schedule.random_steps import step
from tests.schedule.running import check

from weft.schedule import Schedule

STEPS, TRIES = 8, 25


def run_one(name: str, seed: int) -> int:
    """Tries one random schedule, and checks the program after each step; returns how many steps were accepted."""
    case = CASES[name]()
    s, made = Schedule(case.program), random.Random(f"{name} {seed}")
    accepted = 0
    for _ in range(TRIES):
        if accepted < STEPS and step(s, made):
            accepted += 1
            try:
                check(case, s.program, seed)
            except Exception as e:
                e.add_note(f"{name}, seed {seed}, after\n{s.trace}")
                raise
    return accepted


@pytest.mark.sampled(4)
@pytest.mark.parametrize("name", CASES)
def test_a_few(name: str) -> None:
    assert sum(run_one(name, seed) for seed in range(12)) > 40


@pytest.mark.slow
@pytest.mark.parametrize("name", CASES)
def test_many(name: str) -> None:
    for seed in range(100, 500):
        run_one(name, seed)
