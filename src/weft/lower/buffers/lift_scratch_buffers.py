"""Makes the large scratch buffers of a kernel its parameters, so that its caller can plan their memory.

    def conv(x, y, n):                            def conv(x, y, padded, n):
        padded = alloc("global", f32[4096])  ->       ...
        ...

Only those of the entry function: a task's buffers are private to each thread. Buffers of dynamic size stay where they are.
"""

from __future__ import annotations

from weft.cost import SMALLEST_PLANNED_BUFFER
from weft.ir import Const, Var
from weft.loop import Alloc, Buffer, Function, Program
from weft.lower.stmt_rewriter import Steps, StmtRewriter


def lift_scratch_buffers(program: Program) -> tuple[Program, tuple[Buffer, ...]]:
    """Returns *program* with scratch buffers as parameters before the first scalar of its entry, and these buffers."""
    entry, *tasks = program.functions
    lift = _Lift()
    body = lift.rewrite(entry.body)
    if not lift.lifted:
        return program, ()
    buffers = [p for p in entry.params if not isinstance(p, Var)]
    scalars = [p for p in entry.params if isinstance(p, Var)]
    made = Function(entry.name, (*buffers, *lift.lifted, *scalars), body, entry.notes)
    return Program((made, *tasks)), tuple(lift.lifted)


def size_of(buffer: Buffer) -> int | None:
    """Returns the bytes of a buffer; None for one of dynamic size."""
    size = buffer.dtype.bytes
    for extent in buffer.shape:
        if not isinstance(extent, Const):
            return None
        size *= int(extent.value)
    return size


class _Lift(StmtRewriter):
    """Removes the large allocations."""

    def __init__(self) -> None:
        self.lifted: list[Buffer] = []

    def visit_alloc(self, s: Alloc) -> Steps:
        if s.buffer.scope == "global" and (size_of(s.buffer) or 0) >= SMALLEST_PLANNED_BUFFER:
            self.lifted.append(s.buffer)
            return (yield s.body)
        return Alloc(s.buffer, (yield s.body))
