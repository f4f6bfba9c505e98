"""What was proved of a loop still holds after a step that leaves the order of instances: a proof anew finds nothing else."""

from __future__ import annotations

import random

import pytest
from tests.schedule.programs import CASES
from tests.schedule.random_steps import step

from weft.loop import Function
from weft.schedule import Schedule, schedule
from weft.schedule.cursors.state import Illegal
from weft.schedule.legality.loop_kinds import relegalize

STEPS, TRIES = 10, 30


class Proofs:
    """Proves anew what a step that is in order leaves unproved, and counts these steps."""

    def __init__(self) -> None:
        self.spared = 0

    def relegalize(self, fn: Function, before: Function, *, in_order: bool = False) -> Function:
        made = relegalize(fn, before, in_order=in_order)
        if in_order and made is not before:
            self.spared += 1
            assert self.anew(fn, before) is made, "a buffer would be privatised that was not before"
        return made

    def anew(self, fn: Function, before: Function) -> Function:
        try:
            return relegalize(fn, before)
        except Illegal as refusal:  # a refused step is no failure of a random schedule
            raise AssertionError("a loop would be refused") from refusal


@pytest.mark.sampled(4)
@pytest.mark.parametrize("name", CASES)
def test_steps_in_order_need_no_proof(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    proofs = Proofs()
    monkeypatch.setattr(schedule, "relegalize", proofs.relegalize)
    for seed in range(12):
        s, made, accepted = Schedule(CASES[name]().program), random.Random(f"{name} {seed}"), 0
        for _ in range(TRIES):
            if accepted < STEPS and step(s, made):
                accepted += 1
    assert proofs.spared > 10
