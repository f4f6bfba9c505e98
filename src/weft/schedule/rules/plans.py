"""All plans of a program on a machine, the cheapest first: the space that a tuner searches."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from weft.cost import Candidate, Choosing, Plan, Question, cheapest
from weft.loop import Program
from weft.schedule.rules.choose import carry_out
from weft.targets import Target


def plans(program: Program, machine: Target) -> Iterator[Plan]:
    """Yields the cheapest plan, then those that differ from it in one decision, which later ones may follow.

    The decisions after the one that differs are the cheapest again; some of them are then decisions about other schedules.
    """
    best = Choosing(machine)
    carry_out(program, best)
    yield best.plan
    for n, question in enumerate(best.questions):
        for candidate in question.candidates:
            if candidate is not question.chosen:
                yield plan_with(program, machine, best.questions[:n], candidate)


def plan_with(program: Program, machine: Target, before: Sequence[Question], candidate: Candidate[Any]) -> Plan:
    """Returns the plan that answers the questions *before* as they were, the next one by *candidate*, then by the cheapest."""
    planner = Choosing(machine, _Prefix(before, candidate))
    carry_out(program, planner)
    return planner.plan


class _Prefix:
    """Chooses as in *questions* (a prefix of decisions), then *candidate*, then the cheapest."""

    def __init__(self, questions: Sequence[Question], candidate: Candidate[Any]) -> None:
        self._decisions = [*[q.chosen.decision for q in questions], candidate.decision]
        self._next = 0

    def __call__(self, candidates: Sequence[Candidate[Any]]) -> Candidate[Any]:
        self._next += 1
        if self._next > len(self._decisions):
            return cheapest(candidates)
        return next(c for c in candidates if c.decision == self._decisions[self._next - 1])
