"""Makes a function of the body of each parallel loop, which a pool of threads can run piece by piece.

    def main(A, B):                        def main(A, B):
        for i in parallel(0, 8):               main_task(0, 8, A.at(0), B.at(0))
            B[i] = A[i] * 2.0      ->      def main_task(begin, end, A, B):  # task
                                               for i in range(begin, end):
                                                   B[i] = A[i] * 2.0

    for i in parallel(0, 8, task_inside=1):    for k in range(0, 64):
        for k in range(0, 64):         ->          for i in range(begin, end):
            S(i, k)                                    S(i, k)

A call of a task means: run all of `begin .. end - 1`, in any pieces, in any order, at the same time or not. Only the outermost
parallel loops become tasks; those inside them run one iteration at a time.
"""

from __future__ import annotations

from collections.abc import Iterable

from weft.ir import INDEX, ZERO, Expr, Var, accesses, free_vars, substitute
from weft.loop import (
    Address,
    Alloc,
    Buffer,
    Call,
    For,
    Function,
    Load,
    LoopKind,
    Param,
    Program,
    Stmt,
    Store,
    Task,
    TaskInside,
    View,
    bound_vars,
    find_note,
    own_exprs,
    statements,
    without_moot_notes,
    without_notes,
)
from weft.lower.stmt_rewriter import Steps, StmtRewriter


def outline_tasks(program: Program) -> Program:
    """Returns *program* with its parallel loops made into functions with the note `Task`."""
    functions: list[Function] = []
    for f in program.functions:
        outline = _Outline(f)
        functions.append(f.with_body(outline.rewrite(f.body)))
        functions += outline.tasks
    return program if tuple(functions) == program.functions else Program(tuple(functions))


class _Outline(StmtRewriter):
    """Collects the tasks of a function."""

    def __init__(self, function: Function) -> None:
        self.function = function
        self.tasks: list[Function] = []
        self.parallel = 0

    def visit_for(self, s: For) -> Steps:
        is_parallel = s.kind is LoopKind.PARALLEL
        self.parallel += is_parallel
        body = yield s.body
        self.parallel -= is_parallel
        kind = LoopKind.SERIAL if is_parallel else s.kind
        loop = For(s.var, s.begin, s.extent, kind, body, s.notes)
        if not is_parallel:
            return loop
        return inside_loops(loop) if self.parallel else self._task(loop)

    def _task(self, loop: For) -> Call:
        """Makes a task of *loop* and returns the call that runs all of it."""
        name = f"{self.function.name}_task{len(self.tasks) or ''}"
        begin, end = Var("begin", INDEX), Var("end", INDEX)
        body = loop.body
        if loop.begin is not ZERO:
            body = substitute(body, {loop.var: loop.begin + loop.var})
        piece = inside_loops(For(loop.var, begin, end - begin, LoopKind.SERIAL, body, loop.notes))
        buffers, scalars = captured(piece, {begin, end})
        params: tuple[Param, ...] = (begin, end, *buffers, *scalars)
        self.tasks.append(without_moot_notes(Function(name, params, piece, (Task(),))))
        addresses: list[Expr] = [Address(b, tuple([ZERO] * b.rank)) for b in buffers]
        return Call(name, (ZERO, loop.extent, *addresses, *scalars))


def inside_loops(loop: For) -> Stmt:
    """Returns a *loop* of independent iterations inside of as many loops under it as its note `TaskInside` says.

    Where other passes have put something between them, it stays outside.
    """
    note = find_note(loop.notes, TaskInside)
    around: list[For] = []
    inner: Stmt = loop
    for _ in range(note.loops if note is not None else 0):
        inner = inner.body if isinstance(inner, For) else inner
        if not isinstance(inner, For) or inner.kind is not LoopKind.SERIAL or _depends_on(inner, loop.var):
            return loop
        around.append(inner)
    body: Stmt = loop
    if around:
        notes = without_notes(loop.notes, TaskInside)
        body = For(loop.var, loop.begin, loop.extent, loop.kind, around[-1].body, notes)
    for f in reversed(around):
        body = For(f.var, f.begin, f.extent, f.kind, body, f.notes)
    return body


def _depends_on(loop: For, var: Var) -> bool:
    return any(v is var for e in (loop.begin, loop.extent) for v in free_vars(e))


def captured(body: Stmt, own: Iterable[Var]) -> tuple[list[Buffer], list[Var]]:
    """Returns the free buffers and variables of *body*, in order of first use."""
    made: set[Buffer | Var] = set(own)
    buffers: dict[Buffer, None] = {}
    used: dict[Var, None] = {}
    for s in statements(body):
        made.update(bound_vars(s))
        if isinstance(s, Alloc | View):
            made.add(s.buffer)
        if isinstance(s, Store):
            buffers[s.buffer] = None
        if isinstance(s, View):
            buffers[s.source] = None
        for e in own_exprs(s):
            buffers.update({n.buffer: None for n in accesses(e) if isinstance(n, Load | Address)})
            used.update(dict.fromkeys(free_vars(e)))
    outside = [b for b in buffers if b not in made]
    shapes = [v for b in outside for size in b.shape for v in free_vars(size)]
    return outside, [v for v in dict.fromkeys([*used, *shapes]) if v not in made]
