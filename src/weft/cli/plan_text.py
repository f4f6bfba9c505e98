"""The decisions behind a kernel as text: the chosen candidate, the runners-up, and the estimated cost of each."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from weft.cost import Choosing, Question
from weft.driver.kernel import KernelRequest
from weft.schedule import carry_out
from weft.targets import Target

RUNNERS_UP = 3
"""How many of the candidates that were not chosen are shown."""


def questions_of(request: KernelRequest, target: Target) -> Sequence[Question]:
    """Returns the choices that scheduling a kernel for *target* puts, each with its candidates and the cheapest of them."""
    planner = Choosing(target)
    carry_out(request.program, planner)
    return planner.questions


def plan_lines(questions: Sequence[Question]) -> Iterator[str]:
    """Yields a line for each decision, as a plan has it, and one for each runner-up, with its relative cost."""
    for q in questions:
        yield f"{q.subject}: {q.chosen.decision}"
        others = sorted([c for c in q.candidates if c is not q.chosen], key=lambda c: c.cycles)
        for c in others[:RUNNERS_UP]:
            yield f"#   {_times(c.cycles, q.chosen.cycles)}  {c.decision}"
        if len(others) > RUNNERS_UP:
            yield f"#   and {len(others) - RUNNERS_UP} more"


def plan_facts(questions: Sequence[Question]) -> list[Mapping[str, object]]:
    """Returns the decisions for JSON: all candidates, with their costs."""
    return [
        {
            "subject": q.subject,
            "question": q.chosen.decision.question,
            "chosen": str(q.chosen.decision),
            "candidates": [{"decision": str(c.decision), "cost": c.cycles} for c in q.candidates],
        }
        for q in questions
    ]


def _times(cost: float, chosen: float) -> str:
    """Returns how many times as much as the chosen one a candidate costs; that can't be told of one that costs nothing."""
    return f"{cost / chosen:5.2f} x" if chosen > 0 else "      -"
