"""Where a buffer may be used: only where its allocation is around."""

from __future__ import annotations

from weft.loop.nodes import Alloc, Block, Buffer, Function, Stmt
from weft.loop.visit import sub_statements
from weft.schedule.state import refuse


def check_scopes(fn: Function) -> None:
    """Refuses a function in which a block uses a buffer outside its allocation."""
    visible = frozenset(p for p in fn.params if isinstance(p, Buffer))
    stack: list[tuple[Stmt, frozenset[Buffer]]] = [(fn.body, visible)]
    while stack:
        s, visible = stack.pop()
        if isinstance(s, Alloc):
            visible |= {s.buffer}
        if isinstance(s, Block):
            for r in (*s.reads, *s.writes):
                if r.buffer not in visible:
                    refuse(
                        f"{s.name} would use {r.buffer.name}, which each iteration of another loop has for itself", s
                    )
        else:
            stack += [(k, visible) for k in sub_statements(s)]
