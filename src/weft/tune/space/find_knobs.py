"""The knobs of a program: its rules are carried out, and their questions noted."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Final, TypeAlias

from weft.cost import Address, Answering, Decision, Planner, Question
from weft.loop import Program
from weft.schedule import Schedule, carry_out
from weft.targets import Target
from weft.tune.space.knob import Knob

CarryOut: TypeAlias = Callable[[Program, Planner], Schedule]
"""A function that schedules a program by the answers of a planner."""

BRANCHING: Final = frozenset({"Rule", "OnePass", "Inline", "Borders", "SharePatches", "Order"})
"""The kinds of decisions after which other questions are asked: each alternative is carried out once."""

MOST_BRANCHES: Final = 24
"""Alternatives that are carried out for their questions."""


@dataclass(frozen=True, eq=False)
class Branch:
    """The questions where the decisions of `BRANCHING` kinds are *choices*."""

    choices: Mapping[Address, Decision]
    asked: frozenset[Address]


def find_knobs(
    program: Program, machine: Target, fixed: Mapping[Address, Decision], schedule: CarryOut = carry_out
) -> tuple[tuple[Knob, ...], tuple[Branch, ...]]:
    """Returns the questions of *program* and their answers, with those of *fixed* answered as it says; and when each is asked.

    *schedule* asks: the rules, or a template.

    Questions that come up only after an alternative of a `BRANCHING` decision are knobs as well; where a point takes another
    alternative, they have no effect.
    """
    found: dict[Address, Knob] = {}
    branches: list[Branch] = []
    waiting: list[Mapping[Address, Decision]] = [fixed]
    while waiting and len(branches) < MOST_BRANCHES:
        answers = waiting.pop(0)
        asked = dict(_asked(program, machine, answers, schedule))
        choices = {a: q.chosen.decision for a, q in asked.items() if a[1] in BRANCHING}
        branches.append(Branch(choices, frozenset(asked)))
        for address, question in asked.items():
            if address in found or address in fixed:
                continue
            found[address] = _knob(address, question)
            if address[1] in BRANCHING:
                waiting += [{**answers, address: d} for d in found[address].domain if d != question.chosen.decision]
    return tuple(found.values()), tuple(branches)


def _asked(
    program: Program, machine: Target, answers: Mapping[Address, Decision], schedule: CarryOut
) -> Iterator[tuple[Address, Question]]:
    planner = Answering(machine, answers)
    schedule(program, planner)
    yield from zip(planner.asked, planner.questions, strict=True)


def _knob(address: Address, question: Question) -> Knob:
    """Returns the knob of a question; sizes stand in ascending order, so that neighbours in the domain are alike."""
    domain = tuple(sorted({c.decision for c in question.candidates}, key=_size))
    return Knob(address, domain, domain.index(question.chosen.decision))


def _size(decision: Decision) -> tuple[tuple[float, ...], str]:
    """Returns the numbers of a decision, which order it, then its text."""
    return numbers_in(decision), repr(decision)


def numbers_in(decision: Decision) -> tuple[float, ...]:
    """Returns the numbers and truths of a decision, those of tuples one by one."""
    return tuple([x for numbers in numbers_by_field(decision).values() for x in numbers])


def numbers_by_field(decision: Decision) -> dict[str, list[float]]:
    """Returns the numbers and truths in each field of a decision; fields of words have none."""
    fields = {name: value if isinstance(value, tuple) else (value,) for name, value in vars(decision).items()}
    return {name: [float(x) for x in parts if isinstance(x, int | float)] for name, parts in fields.items()}
