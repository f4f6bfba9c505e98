"""Rewriting the code of register tiles as a whole: versions of it for the remainders of an axis."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable
from typing import TypeAlias

from weft.loop import Alloc, Seq, Stmt, seq
from weft.lower.stmt_rewriter import Steps, StmtRewriter

Versions: TypeAlias = Callable[[Stmt], Stmt]
"""Returns the versions of a tile, with the allocations around its code if there are any."""


class TileRewriter(StmtRewriter):
    """Puts versions in the place of tiles, each with registers of its own."""

    def __init__(self) -> None:
        self._plain: Seq | None = None  # the code asked about last, if it has no versions

    @abstractmethod
    def versions(self, code: Seq) -> Versions | None:
        """Returns the maker of the versions, if *code* is the whole code of a tile that has some; else None."""

    def visit_alloc(self, s: Alloc) -> Steps:
        """Gives each version the buffers that are allocated right around the code."""
        body: Stmt = s
        while isinstance(body, Alloc):
            body = body.body
        made = self._versions(body) if isinstance(body, Seq) else None
        return Alloc(s.buffer, (yield s.body)) if made is None else made(s)

    def visit_seq(self, s: Seq) -> Steps:
        """Rewrites a tile without buffers of its own."""
        versions = self._versions(s)
        if versions is not None:
            return versions(s)
        made = []
        for part in s.body:
            made.append((yield part))
        return seq(*made)

    def _versions(self, code: Seq) -> Versions | None:
        """Returns `versions(code)`, which each of the allocations around some code asks for, and then the code itself."""
        if code is self._plain:
            return None
        made = self.versions(code)
        self._plain = code if made is None else None
        return made
