"""A buffer may be used only inside its allocation."""

from __future__ import annotations

from weft.loop import Alloc, Block, Buffer, Function, Stmt, sub_statements
from weft.schedule.cursors.state import refuse
from weft.targets import SIGHTS


def check_scope_name(scope: str) -> None:
    """Refuses a text that can't be the name of a memory scope; the target defines which scopes there are."""
    if not scope.isidentifier():
        refuse(
            f"{scope!r} is not the name of a memory", hint=f"use one of {', '.join(SIGHTS)}, or of an accelerator's own"
        )


def check_scopes(fn: Function, known: dict[Stmt, frozenset[Buffer]] | None = None) -> None:
    """Refuses a function in which a block uses a buffer outside its allocation.

    *known* caches, from one step to the next, the buffers that statements use: a step leaves most of a program unchanged.
    """
    visible = frozenset([p for p in fn.params if isinstance(p, Buffer)])
    if not _used(fn.body, {} if known is None else known) <= visible:
        _refuse_first(fn, visible)


def _used(root: Stmt, known: dict[Stmt, frozenset[Buffer]]) -> frozenset[Buffer]:
    """Returns the buffers that the blocks under *root* use, but for those that are allocated around them."""
    stack = [root]
    while stack:
        s = stack[-1]
        inner = () if isinstance(s, Block) else s.bodies()
        todo = [k for k in inner if k not in known]
        if todo:
            stack += todo
            continue
        stack.pop()
        if isinstance(s, Block):
            known[s] = frozenset([r.buffer for r in (*s.reads, *s.writes)])
            continue
        used = known[inner[0]] if len(inner) == 1 else frozenset[Buffer]().union(*[known[k] for k in inner])
        known[s] = used - {s.buffer} if isinstance(s, Alloc) else used
    return known[root]


def _refuse_first(fn: Function, visible: frozenset[Buffer]) -> None:
    """Refuses the first block that uses a buffer that is neither *visible* nor allocated around it."""
    stack: list[tuple[Stmt, frozenset[Buffer]]] = [(fn.body, visible)]
    while stack:
        s, visible = stack.pop()
        if isinstance(s, Alloc):
            visible |= {s.buffer}
        if isinstance(s, Block):
            for r in (*s.reads, *s.writes):
                if r.buffer not in visible:
                    refuse(
                        f"{s.name} would use {r.buffer.name}, which each iteration of another loop has for itself",
                        s,
                        "take this step before making the other loop parallel",
                    )
        else:
            stack += [(k, visible) for k in sub_statements(s)]
