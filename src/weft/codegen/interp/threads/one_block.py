"""Looks for races in kernels of any size: one block of the grid is run, and a few iterations of each loop that has barriers.

Threads of a block race in the same way whatever other blocks there are, and whatever the data. The iterations of a loop
that are a few apart touch the same shared memory, those of a ring of buffers included. So a kernel that keeps a GPU busy for a
millisecond is checked in about a second.
"""

from __future__ import annotations

from functools import partial
from typing import Any, Final

import numpy as np

from weft.codegen.interp.threads.thread_machine import run_threads
from weft.ir import ONE, Const, Expr, const
from weft.loop import (
    Buffer,
    Call,
    For,
    Function,
    Kernel,
    LoopKind,
    Param,
    Program,
    Stmt,
    Thread,
    effects_of,
    find_note,
    map_stmts,
    statements,
)
from weft.targets import Target

MOST_WITH_BARRIERS: Final = 4
"""Iterations that are run of a loop with barriers: as many as a ring of buffers that are fetched ahead has."""

MOST_OF_OTHERS: Final = 64
"""Iterations that are run of any other loop of one thread."""


def kernels_of(program: Program) -> list[Function]:
    """Returns the kernels of a program that was lowered for a grid."""
    return [f for f in program.functions if find_note(f.notes, Kernel) is not None]


def check_block(kernel: Function, target: Target, *, last: bool) -> None:
    """Runs the first or the *last* block of *kernel*, whose buffers have constant sizes, on zeros.

    Raises `RaceError` and `DivergenceError` for a kernel that is wrong, `ValueError` for sizes that are not known.
    """
    program = Program((kernel.with_body(map_stmts(kernel.body, partial(_shortened, last=last))),))
    run_threads(program, {p.name: _zeros(p) for p in kernel.params}, target, kernel.name)


def _zeros(p: Param) -> Any:
    return np.zeros([_number(n) for n in p.shape], p.dtype.numpy) if isinstance(p, Buffer) else 1


def _number(e: Expr) -> int:
    if not isinstance(e, Const):
        raise ValueError(f"the size {e} of a buffer is not known")
    return int(e.value)


def _shortened(s: Stmt, *, last: bool) -> Stmt | None:
    if not isinstance(s, For):
        return None
    begin, extent = s.begin, s.extent
    thread = find_note(s.notes, Thread)
    if thread is not None and thread.axis.startswith("blockIdx"):
        begin, extent = (begin + extent - ONE if last else begin), ONE
    elif s.kind is not LoopKind.BOUND and isinstance(extent, Const):
        most = MOST_WITH_BARRIERS if any(map(_is_barrier, statements(s.body))) else MOST_OF_OTHERS
        extent = const(min(_number(extent), most), extent.dtype)
    return For(s.var, begin, extent, s.kind, s.body, s.notes)


def _is_barrier(s: Stmt) -> bool:
    known = effects_of(s) if isinstance(s, Call) else None
    return known is not None and known.barrier is not None
