"""A buffer may be used only inside its allocation."""

from __future__ import annotations

from weft.loop import Alloc, Block, Buffer, Function, Stmt, outline, sub_statements
from weft.schedule.cursors.state import refuse
from weft.targets import SIGHTS


def check_scope_name(scope: str) -> None:
    """Refuses a text that can't be the name of a memory scope; the target defines which scopes there are."""
    if not scope.isidentifier():
        refuse(
            f"{scope!r} is not the name of a memory", hint=f"use one of {', '.join(SIGHTS)}, or of an accelerator's own"
        )


def check_scopes(fn: Function) -> None:
    """Refuses a function in which a block uses a buffer outside its allocation."""
    visible = frozenset([p for p in fn.params if isinstance(p, Buffer)])
    if not outline(fn.body).used <= visible:
        _refuse_first(fn, visible)


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
