"""Accesses to memory in expressions: nodes of a class that reads an element of a buffer, or takes its address.

Each node caches which of the two there are in it, so that walks in search of them leave out the arithmetic of indices.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final, cast

from weft.ir.expr.base import Expr
from weft.ir.expr.node import ADDRESSES, READS, Node

ANY: Final = READS | ADDRESSES


def reads_memory(e: Expr) -> bool:
    """Tells whether *e* depends on the contents of memory."""
    return bool(_accesses_in(e) & READS)


def accesses_memory(e: Expr) -> bool:
    """Tells whether *e* reads memory, or has an address in it."""
    return bool(_accesses_in(e))


def accesses(e: Expr) -> list[Node]:
    """Returns the distinct accesses in *e*, in program order; one in the index of another comes before it."""
    if not _accesses_in(e):
        return []
    found: list[Node] = []
    seen: set[Node] = set()
    stack: list[Node | None] = [e]  # None: the node before it is an access, whose indices are done
    while stack:
        n = stack.pop()
        if n is None:
            found.append(cast(Node, stack.pop()))
        elif n not in seen:
            seen.add(n)
            kids = [k for k in n.children() if _known(k)]
            if n.accesses_by_itself:
                if not kids:
                    found.append(n)
                    continue
                stack += (n, None)
            stack += kids[::-1]
    return found


def map_accesses(e: Expr, change: Callable[[Node], Node | None], memo: dict[Node, Node]) -> Expr:
    """Rebuilds *e* bottom-up with its accesses, their indices rebuilt, passed to *change*; None keeps one.

    *memo* may be kept between calls with the same *change*.
    """
    if not _accesses_in(e):
        return e
    stack: list[Node] = [e]
    while stack:
        n = stack[-1]
        if n in memo:
            stack.pop()
            continue
        kids = n.children()
        todo = [k for k in kids if _known(k) and k not in memo]
        if todo:
            stack += todo
            continue
        stack.pop()
        new_kids = tuple([memo[k] if _known(k) else k for k in kids])
        new = n if new_kids == kids else n.rebuild(new_kids)  # nodes are equal only to themselves
        changed = change(new) if n.accesses_by_itself else None
        memo[n] = new if changed is None else changed
    return cast(Expr, memo[e])


def _accesses_in(e: Node) -> int:
    """Returns the kinds of accesses in *e*; each node caches the answer."""
    stack = [e]
    while stack:
        n = stack[-1]
        if hasattr(n, "accesses"):
            stack.pop()
            continue
        kids = n.children()
        todo = [k for k in kids if not hasattr(k, "accesses")]
        if todo:
            stack += todo
            continue
        kinds = n.accesses_by_itself
        for k in kids:
            kinds |= _known(k)
        _remember(n, kinds)
        stack.pop()
    return _known(e)


_remember = Node.accesses.__set__  # type: ignore[attr-defined]  # nodes are immutable but for cached answers


def _known(n: Node) -> int:
    return n.accesses  # type: ignore[attr-defined,no-any-return]
