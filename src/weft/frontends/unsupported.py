"""The error that lists every operator of a model that Weft does not have."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

from weft.support.errors import UnsupportedOperators
from weft.support.text import printable_line

SHOWN_NODES: Final = 3
"""How many nodes are named of each unsupported operator."""


def unsupported_operators(missing: Mapping[str, Sequence[str]], hint: str) -> UnsupportedOperators:
    """Returns the error for operators that are *missing*, each with the names of the model's nodes that it stands in."""
    count = len(missing)
    lines = [_line(name, nodes) for name, nodes in missing.items()]
    return UnsupportedOperators(
        f"the model uses {count} operator{'s' if count > 1 else ''} that Weft does not have:\n" + "\n".join(lines),
        hint=hint,
    )


def _line(name: str, nodes: Sequence[str]) -> str:
    more = f" and {len(nodes) - SHOWN_NODES} more" if len(nodes) > SHOWN_NODES else ""
    shown = ", ".join(nodes[:SHOWN_NODES])
    return printable_line(f"  {name}, {len(nodes)} node{'s' if len(nodes) > 1 else ''}: {shown}{more}")
