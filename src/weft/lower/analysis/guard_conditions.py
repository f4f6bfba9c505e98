"""The conditions that guard statements and values, and the sizes of the guarded statements."""

from __future__ import annotations

from collections.abc import Iterable
from functools import lru_cache
from typing import Final

from weft.ir import (
    BRANCHES,
    SELECTS,
    TRUE,
    Const,
    Expr,
    Le,
    Lt,
    Node,
    Select,
    conjuncts,
    map_nodes,
    nodes_with,
    reads_memory,
)
from weft.loop import For, If, LoopKind, Seq, Stmt, Store, mentioned, own_exprs, seq, statements, sub_statements

_GUARDS: Final = BRANCHES | SELECTS


class Guards:
    """The single conditions of the guards in a statement, remembered by statement."""

    def __init__(self) -> None:
        self.memo: dict[Node, tuple[Expr, ...]] = {}

    def of(self, s: Stmt) -> tuple[Expr, ...]:
        """Returns the conditions in *s*, each once."""
        stack = [s]
        while stack:
            t = stack[-1]
            if t in self.memo:
                stack.pop()
                continue
            if not t.traits & _GUARDS:
                self.memo[t] = ()
                continue
            todo = [k for k in sub_statements(t) if k not in self.memo]
            if todo:
                stack += todo
                continue
            stack.pop()
            found: dict[Expr, None] = {}
            if isinstance(t, If):
                found.update(dict.fromkeys(conjuncts(t.cond)))
            if t.traits & SELECTS:
                for e in own_exprs(t):
                    found.update(dict.fromkeys(self._in(e)))
            for k in sub_statements(t):
                found.update(dict.fromkeys(self.memo[k]))
            self.memo[t] = tuple(found)
        return self.memo[s]

    def _in(self, e: Expr) -> tuple[Expr, ...]:
        if e not in self.memo:
            selects = [n for n in nodes_with(SELECTS, e) if isinstance(n, Select)]
            self.memo[e] = tuple([c for n in selects for c in conjuncts(n.cond)])
        return self.memo[e]


def between_pieces(s: Stmt) -> list[Lt | Le]:
    """Returns the comparisons by which selects in *s* read one piece of a concatenation or another, memory either way."""
    selects = [n for t in statements(s) for e in own_exprs(t) for n in nodes_with(SELECTS, e) if isinstance(n, Select)]
    either = [n.cond for n in selects if reads_memory(n.then) and reads_memory(n.other)]
    return [c for c in dict.fromkeys(either) if isinstance(c, Lt | Le)]


def opposite(c: Lt | Le) -> Expr:
    """Returns the comparison that holds where *c* does not, of integers."""
    return Le(c.b, c.a) if isinstance(c, Lt) else Lt(c.b, c.a)


def uses_registers(s: Stmt) -> bool:
    """Answers whether *s* works on a register tile, all loops over which must be cut into the same vectors."""
    return any(b.in_registers for b in mentioned(s))


@lru_cache(maxsize=256)
def stores_in(s: Stmt) -> int:
    """Returns how many stores *s* has once its unrolled loops are written out."""
    total = 0
    stack = [(s, 1)]
    while stack:
        t, times = stack.pop()
        if type(t) is Store:
            total += times
            continue
        if isinstance(t, For) and t.kind is LoopKind.UNROLLED and isinstance(t.extent, Const):
            times *= int(t.extent.value)
        stack += [(k, times) for k in sub_statements(t)]
    return total


def assume(body: Stmt, true: Iterable[Expr]) -> Stmt:
    """Returns *body* where the conditions *true* hold."""
    memo: dict[Node, Node] = dict.fromkeys(true, TRUE)
    return map_nodes(body, _decided, memo=memo)


def _decided(n: Node) -> Node | None:
    if isinstance(n, Seq):
        return seq(*n.body) if any(isinstance(s, Seq) for s in n.body) else None  # what an If had in it
    return n.then if type(n) in _GUARDED and n.cond is TRUE else None  # type: ignore[attr-defined]


_GUARDED: Final = frozenset({If, Select})
