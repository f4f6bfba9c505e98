"""Where memory for a buffer may begin: what generated code, the plan of a model's memory and the runtime agree on."""

from __future__ import annotations

from typing import Final

ALIGNMENT: Final = 64
"""Bytes that memory for a buffer begins at a multiple of: a cache line, and the width of the widest vectors."""
