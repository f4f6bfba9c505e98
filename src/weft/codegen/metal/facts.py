"""The versions that generated Metal Shading Language depends on: none, since the text is Weft's own."""

from __future__ import annotations

from weft.targets import Target


def facts(target: Target) -> str:
    """Returns the least version of the language that the source is written to."""
    return "MSL 2.4"
