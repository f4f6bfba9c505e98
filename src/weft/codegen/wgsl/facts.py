"""The versions that generated WGSL depends on: none, since the text is Weft's own."""

from __future__ import annotations

from weft.targets import Target


def facts(target: Target) -> str:
    """Returns the standard that the source is written to."""
    return "WGSL"
