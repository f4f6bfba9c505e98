"""A clock of the CPU time of each stage of a job."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from time import thread_time


class StageClock:
    """Adds up the processor time of this thread by stage."""

    def __init__(self) -> None:
        self._seconds: dict[str, float] = {}

    @contextmanager
    def stage(self, name: str) -> Iterator[None]:
        """Adds the time that the block takes to the stage called *name*, whether it raises or not."""
        begin = thread_time()
        try:
            yield
        finally:
            self._seconds[name] = self._seconds.get(name, 0.0) + thread_time() - begin

    @property
    def seconds(self) -> tuple[tuple[str, float], ...]:
        """The stages in the order in which they began first."""
        return tuple(self._seconds.items())
