"""Which expressions depend on the contents of memory: those with a node of a class that is a load."""

from __future__ import annotations

from weft.ir.expr.base import Expr
from weft.ir.expr.node import Node


def reads_memory(e: Expr) -> bool:
    """Tells whether *e* depends on the contents of memory; each node caches the answer."""
    stack: list[Node] = [e]
    while stack:
        n = stack[-1]
        if hasattr(n, "reads_memory"):
            stack.pop()
            continue
        kids = n.children()
        todo = [k for k in kids if not hasattr(k, "reads_memory")]
        if todo:
            stack += todo
            continue
        _remember(n, n.is_load or any(map(_remembered, kids)))
        stack.pop()
    return _remembered(e)


_remember = Node.reads_memory.__set__  # type: ignore[attr-defined]  # nodes are immutable but for cached answers


def _remembered(n: Node) -> bool:
    return n.reads_memory  # type: ignore[attr-defined,no-any-return]
