"""The alignment of memory for a buffer, on which generated code, the memory plan of a model and the runtime agree."""

from __future__ import annotations

from typing import Final

ALIGNMENT: Final = 64
"""Bytes that memory for a buffer begins at a multiple of: a cache line, and the width of the widest vectors."""
