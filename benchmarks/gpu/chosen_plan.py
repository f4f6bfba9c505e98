"""Models in which one decision is answered by a plan that is given, for benchmarks that time plans beside one another."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import onnx

from weft.cost import Candidate, Decision, cheapest
from weft.driver.build import build
from weft.runtime.artifact import artifact_parts
from weft.support.errors import WeftError


class Taking:
    """Answers the question of *wanted* by it, and others by the cheapest; `taken` is the answer that was legal in the end."""

    def __init__(self, wanted: Decision) -> None:
        self.wanted = wanted
        self.taken: Decision | None = None

    def __call__(self, candidates: Sequence[Candidate[Any]]) -> Candidate[Any]:
        """Chooses."""
        found = next((c for c in candidates if c.decision == self.wanted), cheapest(candidates))
        if isinstance(found.decision, type(self.wanted)):
            self.taken = found.decision
        return found


def compile_with(model: onnx.ModelProto, plan: Decision, target: str, path: str) -> str:
    """Writes a model that is compiled with *plan* to a file; returns why not, or nothing."""
    taking = Taking(plan)
    try:
        made = build(model, target, choose=taking)
    except WeftError as error:
        return str(error).splitlines()[0]
    if taking.taken != plan:
        return "not legal"
    Path(path).write_bytes(b"".join(artifact_parts(made.package)))
    return ""
