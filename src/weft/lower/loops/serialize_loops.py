"""Makes parallel loops serial, in the thread that reaches them.

for i in parallel(0, 8):   ->   for i in range(0, 8):
"""

from __future__ import annotations

from dataclasses import replace

from weft.loop import For, LoopKind, Program, Stmt, map_stmts
from weft.lower.loops.outline_tasks import inside_loops


def serialize_loops(program: Program) -> Program:
    """Returns *program* without parallel loops; those bound to a device's threads stay."""
    made = [replace(f, body=map_stmts(f.body, _serial)) for f in program.functions]
    return Program(tuple(made))


def _serial(s: Stmt) -> Stmt | None:
    if isinstance(s, For) and s.kind is LoopKind.PARALLEL:
        return inside_loops(For(s.var, s.begin, s.extent, LoopKind.SERIAL, s.body, s.notes))
    return None
