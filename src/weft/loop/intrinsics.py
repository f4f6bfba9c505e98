"""The callees that every backend knows without a declaration: hints to the machine, which compute nothing."""

from __future__ import annotations

from typing import Final

PREFETCH: Final = "weft.prefetch"
"""Called with the address of an element that will be read soon, which may lie outside of its buffer."""
