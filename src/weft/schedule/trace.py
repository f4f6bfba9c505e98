"""Traces: the steps of a schedule, printable as a Python script and replayable on another program."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from weft.schedule.state import BlockRef, LoopRef

Ref = LoopRef | BlockRef


@dataclass(frozen=True)
class Step:
    """One call of a schedule's method: its name, its arguments, and the references that it returned."""

    method: str
    arguments: tuple[Any, ...]
    keywords: Mapping[str, Any]
    results: tuple[Ref, ...]
    many: bool  # whether the results came as a tuple


@dataclass
class Trace:
    """The steps so far; references are named after what they refer to, when they are printed."""

    steps: list[Step] = field(default_factory=list)

    def add(self, method: str, arguments: tuple[Any, ...], keywords: Mapping[str, Any], result: Any) -> None:
        """Appends a step; *result* is what the method returned."""
        many = isinstance(result, tuple)
        results = () if result is None else result if many else (result,)
        self.steps.append(Step(method, arguments, dict(keywords), results, many))

    def __str__(self) -> str:
        names = _Names()
        return "\n".join(_line(step, names) for step in self.steps)


class _Names:
    """A Python name for each reference, derived from its loop or block, made unique."""

    def __init__(self) -> None:
        self.of: dict[Ref, str] = {}
        self.taken: set[str] = {"s"}

    def __call__(self, ref: Ref) -> str:
        if ref not in self.of:
            base = (
                ref.name.replace(".", "_") + "_block" if isinstance(ref, BlockRef) else ref.var.name.replace(".", "_")
            )
            name, n = base, 0
            while name in self.taken:
                n += 1
                name = f"{base}_{n}"
            self.taken.add(name)
            self.of[ref] = name
        return self.of[ref]


def _line(step: Step, names: _Names) -> str:
    shown = [_show(a, names) for a in step.arguments] + [f"{k}={_show(v, names)}" for k, v in step.keywords.items()]
    call = f"s.{step.method}({', '.join(shown)})"
    if not step.results:
        return call
    left = ", ".join(names(r) for r in step.results)
    return f"{left}{',' if step.many and len(step.results) == 1 else ''} = {call}"


def _show(value: Any, names: _Names) -> str:
    if isinstance(value, LoopRef | BlockRef):
        return names(value)
    if isinstance(value, list | tuple):
        inner = ", ".join(_show(v, names) for v in value)
        return f"[{inner}]" if isinstance(value, list) else f"({inner}{',' if len(value) == 1 else ''})"
    return repr(value)


def replay(trace: Trace, schedule: Any) -> None:
    """Repeats the steps of *trace* on *schedule*, a fresh one of the same or a similar program.

    Raises `ScheduleError` at the first step that is not legal there.
    """
    known: dict[Ref, Ref] = {}
    for step in trace.steps:
        arguments = [_translate(a, known) for a in step.arguments]
        keywords = {k: _translate(v, known) for k, v in step.keywords.items()}
        made = getattr(schedule, step.method)(*arguments, **keywords)
        results = made if step.many else () if made is None else (made,)
        known.update(zip(step.results, results, strict=True))


def _translate(value: Any, known: Mapping[Ref, Ref]) -> Any:
    if isinstance(value, LoopRef | BlockRef):
        return known.get(value, value)
    if isinstance(value, list | tuple):
        return type(value)(_translate(v, known) for v in value)
    return value
