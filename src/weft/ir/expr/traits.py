"""Traits of expressions: whether there are loads, addresses, selects or divisions in them.

Each node has the traits of all nodes in it, so that a walk in search of one leaves out the parts that have none: most of the
nodes of a formula are arithmetic of indices.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final, cast

from weft.ir.expr.base import Expr
from weft.ir.expr.node import ADDRESSES, READS, Node

ACCESSES: Final = READS | ADDRESSES


def reads_memory(e: Expr) -> bool:
    """Tells whether *e* depends on the contents of memory."""
    return bool(e.traits & READS)


def accesses(root: Node) -> list[Node]:
    """Returns the distinct loads and addresses in *root*, in program order; one in the index of another comes before it."""
    return nodes_with(ACCESSES, root)


def nodes_with(traits: int, root: Node) -> list[Node]:
    """Returns the distinct nodes in *root* of a class that has one of *traits*, children first."""
    found: list[Node] = []
    if not root.traits & traits:
        return found
    seen: set[Node] = set()
    stack: list[Node | None] = [root]  # None: the node before it is one to return, whose children are done
    while stack:
        n = stack.pop()
        if n is None:
            found.append(cast(Node, stack.pop()))
        elif n not in seen:
            seen.add(n)
            if n.trait & traits:
                stack += (n, None)
            for k in n.children()[::-1]:
                if k.traits & traits:
                    stack.append(k)
    return found


def map_accesses(e: Expr, change: Callable[[Node], Node | None], memo: dict[Node, Node]) -> Expr:
    """Rebuilds *e* bottom-up with its accesses, their indices rebuilt, passed to *change*; None keeps one.

    *memo* may be kept between calls with the same *change*.
    """
    if not e.traits & ACCESSES:
        return e
    stack: list[Node] = [e]
    while stack:
        n = stack[-1]
        if n in memo:
            stack.pop()
            continue
        kids = n.children()
        todo = [k for k in kids if k not in memo and k.traits & ACCESSES]
        if todo:
            stack += todo
            continue
        stack.pop()
        new_kids = tuple([memo.get(k, k) for k in kids])
        new = n if new_kids == kids else n.rebuild(new_kids)  # nodes are equal only to themselves
        changed = change(new) if n.trait & ACCESSES else None
        memo[n] = new if changed is None else changed
    return cast(Expr, memo[e])
