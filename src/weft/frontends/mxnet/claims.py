"""Tells MXNet's networks by the beginning of their symbol, and their weights by a number."""

from __future__ import annotations

import os
from typing import Final

from weft.frontends.content import head_of

READS: Final = "an MXNet symbol.json with its .params beside it, or the pair of paths"

PARAMS: Final = (0x112).to_bytes(8, "little") + bytes(8)
"""How a file of arrays begins."""


def claims(model: object, head: bytes) -> bool:
    """Tells whether *head* begins a symbol, or weights alone, which the frontend refuses with a hint; of a pair, the first."""
    if isinstance(model, tuple) and len(model) == 2 and isinstance(model[0], str | os.PathLike):
        head = head_of(model[0])
    is_symbol = head.lstrip().startswith(b"{") and b'"nodes"' in head and b'"op"' in head
    return is_symbol or head.startswith(PARAMS)
