"""The versions that no code depends on."""

from __future__ import annotations

from weft.targets import Target


def facts(target: Target) -> str:
    """Returns a name for nothing."""
    return "nothing"
