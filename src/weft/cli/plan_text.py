"""The decisions behind a kernel as text: the chosen candidate, the runners-up, and the estimated cost of each."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, datetime

from weft.cli.console import human_time
from weft.cost import Choosing, Question
from weft.driver.kernel_request import KernelRequest
from weft.records import Record
from weft.schedule import carry_out
from weft.targets import Target

RUNNERS_UP = 3
"""How many of the candidates that were not chosen are shown."""


def questions_of(request: KernelRequest, target: Target) -> Sequence[Question]:
    """Returns the choices that scheduling a kernel for *target* puts, each with its candidates and the cheapest of them.

    None are put where the kernel follows a tuning record.
    """
    if request.record is not None:
        return ()
    planner = Choosing(target)
    carry_out(request.program, planner)
    return planner.questions


def plan_lines(questions: Sequence[Question], record: Record | None, *, is_shipped: bool = False) -> Iterator[str]:
    """Yields a line for each decision, as a plan has it, and one for each runner-up, with its relative cost.

    With a tuning *record*, the decisions are its own, and were not weighed; *is_shipped* tells that it came with Weft.
    """
    if record is not None:
        yield f"# {_told(record, is_shipped=is_shipped)}"
        yield from record.plan.splitlines()
    for q in questions:
        yield f"{q.subject}: {q.chosen.decision}"
        others = sorted([c for c in q.candidates if c is not q.chosen], key=lambda c: c.cycles)
        for c in others[:RUNNERS_UP]:
            yield f"#   {_times(c.cycles, q.chosen.cycles)}  {c.decision}"
        if len(others) > RUNNERS_UP:
            yield f"#   and {len(others) - RUNNERS_UP} more"


def _told(record: Record, *, is_shipped: bool) -> str:
    """Returns in words where a plan was found."""
    day = datetime.fromtimestamp(record.time, UTC).strftime("%Y-%m-%d")
    before = f" instead of {human_time(record.baseline)}" if record.baseline is not None else ""
    by = f", by {record.origin}" if record.origin else ""
    which = "the pack that comes with Weft" if is_shipped else f"the tuning record {record.digest[:10]}"
    return f"from {which}: {human_time(record.seconds)}{before}, measured on {day}{by}"


def plan_facts(questions: Sequence[Question], record: Record | None) -> Mapping[str, object]:
    """Returns the decisions for JSON: all candidates, with their costs; those of a tuning *record* as they were written."""
    if record is not None:
        plan = [line.partition(": ")[::2] for line in record.plan.splitlines()]
        return {"record": record.digest, "decisions": [{"subject": s, "chosen": d} for s, d in plan]}
    return {"decisions": _decisions(questions)}


def _decisions(questions: Sequence[Question]) -> list[Mapping[str, object]]:
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
