"""The profile of a session's calls: their times, as a trace that Chrome and Perfetto show."""

from __future__ import annotations

import json
import os
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import datetime
from pathlib import Path


class SessionProfile:
    """The calls of a session from when it was made on. Calls of several threads may be noted at once."""

    def __init__(self, prefix: str) -> None:
        self.start = time.perf_counter_ns()
        self._path = Path(f"{prefix}_{datetime.now().strftime('%Y-%m-%d_%H-%M-%S')}_{os.getpid()}.json")
        self._calls: list[tuple[str, int, int, int]] = []

    @contextmanager
    def noted(self, name: str) -> Iterator[None]:
        """Records the time of the enclosed code under *name*."""
        begin = time.perf_counter_ns()
        try:
            yield
        finally:
            self._calls.append((name, begin, time.perf_counter_ns(), threading.get_ident()))

    def write(self) -> str:
        """Writes the calls to a file in Chrome's trace format, microseconds from the start on; returns its name."""
        events = [
            {
                "cat": "Session",
                "name": name,
                "ph": "X",
                "ts": (begin - self.start) // 1000,
                "dur": (end - begin) // 1000,
                "pid": os.getpid(),
                "tid": thread,
                "args": {},
            }
            for name, begin, end, thread in self._calls
        ]
        self._path.write_text(json.dumps(events), encoding="utf-8")
        return str(self._path)
