"""Traces: the steps of a schedule, printable as a Python script, storable as text, and replayable on another program."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from weft.ir import Var
from weft.schedule.cursors.primitive import PRIMITIVES
from weft.schedule.cursors.state import BlockRef, LoopRef
from weft.support.errors import ParseError, ScheduleError

Ref = LoopRef | BlockRef
_QUERIES: Final = ("block", "loops")
"""The methods of a schedule that give references and change nothing."""


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
    """The steps so far; when printed, references are named after their loops and blocks."""

    steps: list[Step] = field(default_factory=list)

    def add(self, method: str, arguments: Sequence[Any], keywords: Mapping[str, Any], result: Any) -> None:
        """Appends a step; *result* is the method's return value."""
        many = isinstance(result, tuple)
        results = () if result is None else result if many else (result,)
        self.steps.append(Step(method, tuple(arguments), dict(keywords), results, many))

    def __str__(self) -> str:
        names = _Names()
        return "\n".join(_line(step, names) for step in self.steps)

    def to_json(self) -> str:
        """Returns the steps as JSON, from which `from_json` makes a trace that prints and replays alike."""
        names = _Names()
        return json.dumps([_encode(step, names) for step in self.steps], separators=(",", ":"))

    @staticmethod
    def from_json(text: str) -> Trace:
        """Reads the output of `to_json`; raises `ParseError` for anything else."""
        try:
            decode = _Decoder()
            return Trace([decode.step(*fields) for fields in json.loads(text)])
        except (ValueError, TypeError) as e:
            raise ParseError(f"this is not a trace: {e}") from None


class _Names:
    """A Python name for each reference, derived from its loop or block, made unique."""

    def __init__(self) -> None:
        self.of: dict[Ref, str] = {}
        self.taken: set[str] = {"s"}

    def __call__(self, ref: Ref) -> str:
        if ref not in self.of:
            own = f"{ref.name}_block" if isinstance(ref, BlockRef) else ref.var.name
            base = "".join(c if c.isalnum() else "_" for c in own)
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
        return f"[{', '.join(_show(v, names) for v in value)}]"
    return repr(value)


def _encode(step: Step, names: _Names) -> list[Any]:
    def value(v: Any) -> Any:
        if isinstance(v, LoopRef):
            return {"loop": names(v)}
        return {"block": v.name} if isinstance(v, BlockRef) else v

    keywords = {k: _map(v, value) for k, v in step.keywords.items()}
    results = [value(r) for r in step.results]
    return [step.method, _map(step.arguments, value), keywords, results, step.many]


class _Decoder:
    """Makes steps of JSON values; equal names of loops become one reference."""

    def __init__(self) -> None:
        self.loops: dict[str, LoopRef] = {}

    def step(self, method: str, arguments: list[Any], keywords: dict[str, Any], results: list[Any], many: bool) -> Step:
        if method not in PRIMITIVES and method not in _QUERIES:
            raise ValueError(f"there is no primitive {method!r}")
        given = {k: self.value(v) for k, v in keywords.items()}
        return Step(method, tuple(self.value(arguments)), given, tuple(self.value(results)), many)

    def value(self, v: Any) -> Any:
        match v:
            case {"loop": str(name)}:
                return self.loops.setdefault(name, LoopRef(Var(name)))
            case {"block": str(name)}:
                return BlockRef(name)
            case list():
                return [self.value(x) for x in v]
            case int() | str() | float() | None:
                return v
        raise ValueError(f"{v!r} is no argument of a step")


def replay(trace: Trace, schedule: Any) -> None:
    """Repeats the steps of *trace* on *schedule*, a fresh one of the same or a similar program.

    Raises `ScheduleError` at the first step that is not legal there.
    """
    known: dict[Ref, Ref] = {}

    def translate(value: Any) -> Any:
        return known.get(value, value) if isinstance(value, LoopRef | BlockRef) else value

    for step in trace.steps:
        arguments = _map(step.arguments, translate)
        keywords = {k: _map(v, translate) for k, v in step.keywords.items()}
        made = getattr(schedule, step.method)(*arguments, **keywords)
        results = made if step.many else () if made is None else (made,)
        if len(results) != len(step.results):
            raise ScheduleError(
                f"{step.method} gives {len(results)} references here, not {len(step.results)}",
                hint="a trace fits programs with the same blocks and the same number of loops around each",
            )
        known.update(zip(step.results, results, strict=True))


def references(value: Any) -> Iterator[Ref]:
    """Yields the references in an argument of a step."""
    if isinstance(value, LoopRef | BlockRef):
        yield value
    elif isinstance(value, list | tuple):
        for v in value:
            yield from references(v)


def _map(value: Any, change: Callable[[Any], Any]) -> Any:
    """Applies *change* to a value, or to all that are in a list."""
    return [_map(v, change) for v in value] if isinstance(value, list | tuple) else change(value)
