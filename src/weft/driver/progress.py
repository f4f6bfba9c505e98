"""Progress reports and timings of a compilation."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from threading import get_ident
from time import perf_counter
from typing import Protocol


@dataclass(frozen=True)
class Span:
    """A step of a thread from *begin* to *end* (seconds of `perf_counter`), with *facts* for the reader of a trace."""

    name: str
    kind: str
    begin: float
    end: float
    thread: int = field(default_factory=get_ident)
    facts: Mapping[str, object] = field(default_factory=dict)


class Progress(Protocol):
    """Hears how far a compilation is."""

    def __call__(self, stage: str, done: int, total: int) -> None:
        """Tells that *done* of *total* steps of *stage* are finished; called as a stage begins, in it, and as it ends."""


class Clock:
    """Times the stages of a compilation one after another, and passes on how far they are."""

    def __init__(self, progress: Progress | None = None) -> None:
        self.spans: list[Span] = []
        self._progress = progress
        self._stage = ""
        self._total = 0
        self._start = 0.0

    def begin(self, stage: str, total: int = 1) -> None:
        """Ends the stage before, and begins *stage*, which has *total* steps."""
        self.end()
        self._stage, self._total, self._start = stage, total, perf_counter()
        self.step(0)

    def step(self, done: int) -> None:
        """Tells that *done* steps of the stage are finished."""
        if self._progress is not None:
            self._progress(self._stage, done, self._total)

    def passed(self, name: str, seconds: float, *, changed: bool) -> None:
        """Keeps a pass over the graph that ends now, as a part of the stage."""
        now = perf_counter()
        self.spans.append(Span(name, "graph pass", now - seconds, now, facts={"changed": changed}))

    def end(self) -> None:
        """Ends the stage."""
        if self._stage:
            self.step(self._total)
            self.spans.append(Span(self._stage, "stage", self._start, perf_counter()))
            self._stage = ""

    @property
    def seconds(self) -> dict[str, float]:
        """The seconds of each stage."""
        return {s.name: s.end - s.begin for s in self.spans if s.kind == "stage"}
