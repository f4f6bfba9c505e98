"""The findings of `weft doctor`: a line each, with a state, and the remedy where it is bad."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path

from weft.support.errors import WeftError


class State(StrEnum):
    """How well something is."""

    OK = "ok"
    ADVICE = "advice"
    """It works, and would work better otherwise."""
    PROBLEM = "problem"
    """Something does not work until this is mended."""


@dataclass(frozen=True)
class Finding:
    """A diagnostic: the thing checked, its state, and the remedy where that is bad."""

    name: str
    state: State
    told: str
    todo: str = ""


Check = Callable[[Path], Finding]
"""Looks at one thing; the system's files are under the folder that it is given."""


def checked(check: Check, root: Path) -> Finding:
    """Returns the findings of *check*; that it fails is a finding too."""
    try:
        return check(root)
    except (OSError, ValueError, WeftError) as e:
        told = str(e).partition("\n")[0]
        return Finding(check.__name__.replace("_", " "), State.PROBLEM, f"can't be looked at: {told}", "report this")


def read(root: Path, path: str) -> str | None:
    """Returns the text of a file of the system; None if there is none, or it can't be read."""
    try:
        return (root / path).read_text(encoding="utf-8", errors="replace").strip()
    except OSError:
        return None
