"""Removes moot notes: those that name a buffer that is no longer in scope at their loop.

A step that removes a buffer, or moves its allocation out of a loop's scope, leaves such notes behind:

    for i in range(0, 8, prefetch=(T, 1)):              for i in range(0, 8):
        B[i] = A[i]                               ->        B[i] = A[i]
"""

from __future__ import annotations

from weft.ir import Var
from weft.loop.buffer import Buffer
from weft.loop.nodes import Alloc, For, Function, Stmt, View
from weft.loop.notes import Note, buffers_in
from weft.loop.stmt_outline import outline
from weft.loop.visit import map_stmts, statements


def is_moot(note: Note, loop: For, visible: frozenset[Buffer]) -> bool:
    """Answers whether *note* names a buffer that is neither *visible* around *loop* nor declared in it.

    The buffer of some notes is declared in the loop, such as a double buffer.
    """
    named = buffers_in(note)
    if not named or (not note.is_of_own_buffer and visible.issuperset(named)):
        return False
    inside = {s.buffer for s in statements(loop.body) if isinstance(s, Alloc | View)}
    return not (inside if note.is_of_own_buffer else inside | visible).issuperset(named)


def without_moot_notes(function: Function) -> Function:
    """Returns *function* without the notes of its loops that are moot."""
    moot: dict[Var, set[Note]] = {}
    visible = frozenset(p for p in function.params if isinstance(p, Buffer))
    stack: list[tuple[Stmt, frozenset[Buffer]]] = [(function.body, visible)]
    while stack:
        s, visible = stack.pop()
        if not outline(s).has_notes:
            continue
        if isinstance(s, Alloc | View):
            visible |= {s.buffer}
        elif isinstance(s, For) and (found := {n for n in s.notes if is_moot(n, s, visible)}):
            moot[s.var] = found
        stack += [(k, visible) for k in s.bodies()]

    def change(s: Stmt) -> Stmt | None:
        if not isinstance(s, For) or s.var not in moot:
            return None
        return For(s.var, s.begin, s.extent, s.kind, s.body, tuple([n for n in s.notes if n not in moot[s.var]]))

    return function.with_body(map_stmts(function.body, change)) if moot else function
