"""Rewriting the accesses of buffers that are replaced, under the ranges of the loops around them."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping
from typing import TypeAlias

from weft.ir import Bounds, Expr, Node, map_accesses
from weft.loop import Address, Buffer, For, Load, Store, replace_in_notes
from weft.lower.stmt_rewriter import BoundedRewriter, Steps, Visited

Access: TypeAlias = tuple[Buffer, tuple[Expr, ...]]
"""A buffer and the indices of an element in it."""


class AccessRewriter(BoundedRewriter):
    """Replaces loads, addresses and stores by those that `moved` returns, and buffers in notes by those of `renamed`."""

    def __init__(self, bounds: Bounds) -> None:
        super().__init__(bounds)
        self.memo: dict[Node, Node] = {}  # valid under these bounds only

    @abstractmethod
    def moved(self, buffer: Buffer, indices: tuple[Expr, ...]) -> Access | None:
        """Returns the new location of the element of *buffer* at *indices*; None if it stays."""

    @abstractmethod
    def renamed(self) -> Mapping[Buffer, Buffer]:
        """Returns the buffers that replace others."""

    def expr(self, e: Expr) -> Expr:
        """Rewrites the accesses in *e*."""
        return map_accesses(e, self._access, self.memo)

    def _access(self, n: Node) -> Node | None:
        if not isinstance(n, Load | Address):
            return None
        found = self.moved(n.buffer, n.indices)
        return None if found is None else type(n)(*found)

    def visit_for(self, s: For) -> Steps:
        """Rewrites a loop; its body is under bounds of its own."""
        begin, extent = self.expr(s.begin), self.expr(s.extent)
        memo, self.memo = self.memo, {}
        body = yield from self.loop_body(s)
        self.memo = memo
        notes = replace_in_notes(s.notes, self.renamed()) if s.notes else ()
        return For(s.var, begin, extent, s.kind, body, notes)

    def visit_store(self, s: Store) -> Visited:
        """Rewrites a store."""
        indices, value = self.exprs(s.indices), self.expr(s.value)
        mask = None if s.mask is None else self.expr(s.mask)
        buffer, at = self.moved(s.buffer, indices) or (s.buffer, indices)
        return Store(buffer, at, value, mask)
