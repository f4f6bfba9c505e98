"""How one language of C's family differs from the others: facts and writers that the shared code asks for."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, TypeAlias

from weft.loop import Stmt

StatementWriter: TypeAlias = Callable[[Any, Any], None]
"""Writes a statement, the second argument, with the `Writer` that is the first."""


@dataclass(frozen=True)
class Dialect:
    """A language: its name in messages, and its own parts.

    `statements` are the writers of statements, by type. `address_space` gives the words before the type of a pointer to memory
    of a scope, with a space after them. `square_roots` are the names of that function by the bits of its argument, and `header`
    is what has to be included for it. `watched_argument` is the first argument of the helper that watches a range; without one,
    values are clamped to the range, and nobody is told.
    """

    name: str
    statements: Mapping[type[Stmt], StatementWriter]
    address_space: Callable[[str], str]
    square_roots: Mapping[int, str]
    header: str | None = None
    watched_argument: str | None = None
