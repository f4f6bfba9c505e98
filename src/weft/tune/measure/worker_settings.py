"""The settings with which a worker process is started: an argument of its command line."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass


@dataclass(frozen=True)
class WorkerSettings:
    """The *cores* that a worker may use (all, if None), its niceness, and how many bytes it may take beyond its own start."""

    cores: tuple[int, ...] | None = None
    niceness: int = 0
    memory: int = 2 << 30

    def to_text(self) -> str:
        """Returns the settings as a line of JSON."""
        return json.dumps(asdict(self))

    @staticmethod
    def from_text(text: str) -> WorkerSettings:
        """Returns the settings that `to_text` wrote."""
        facts = json.loads(text)
        cores = None if facts["cores"] is None else tuple(facts["cores"])
        return WorkerSettings(cores, facts["niceness"], facts["memory"])
