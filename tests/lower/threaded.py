"""Computations scheduled for a grid of threads, and what running them there takes."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from tests.schedule.programs import Case

from weft.codegen.interp.threads.counters import Counters
from weft.codegen.interp.threads.thread_machine import run_threads
from weft.loop import BARRIER, NOTHING, WARP_BARRIER, Call, Program, Stmt, statements, verify
from weft.lower import StmtRewriter, lower
from weft.lower.stmt_rewriter import Visited
from weft.schedule import BlockRef, LoopRef, Schedule
from weft.targets import Target
from weft.targets.grid_machines import GENERIC_THREADS


def check_threads(case: Case, program: Program, target: Target = GENERIC_THREADS, seed: int = 0) -> Counters:
    """Lowers *program*, runs its threads, and fails unless they compute what *case* should; returns the counters."""
    flat = lower(program, target, verify=True)
    verify(flat, flat=True)
    return run_case(case, flat, target, seed)


def run_case(case: Case, flat: Program, target: Target = GENERIC_THREADS, seed: int = 0) -> Counters:
    """Runs a flat program on the inputs of *case*, and compares."""
    values = case.arrays(seed)
    expected = case.expected(values)
    given: Mapping[str, Any] = {k: v if isinstance(v, int) else v.reshape(-1) for k, v in values.items()}
    sizes = {p.name: case.sizes[p.name] for p in flat.entry.params if p.name in case.sizes}
    counters = run_threads(flat, {**{k: v for k, v in given.items() if not isinstance(v, int)}, **sizes}, target)
    for name, wanted in zip(case.outputs(), expected, strict=True):
        np.testing.assert_array_equal(given[name].reshape(wanted.shape), wanted, err_msg=f"{name} differs:\n{flat}")
    return counters


def barriers(program: Program) -> list[Stmt]:
    """The barriers of a program, in order."""
    found = [s for f in program.functions for s in statements(f.body)]
    return [s for s in found if isinstance(s, Call) and s.callee in (BARRIER, WARP_BARRIER)]


def without_barrier(program: Program, number: int) -> Program:
    """The program with one of its barriers deleted."""
    return Program(tuple([f.with_body(_Delete(number).rewrite(f.body)) for f in program.functions]))


class _Delete(StmtRewriter):
    def __init__(self, number: int) -> None:
        self.left = number

    def visit_call(self, s: Call) -> Visited:
        if s.callee not in (BARRIER, WARP_BARRIER):
            return s
        self.left -= 1
        return NOTHING if self.left == -1 else s


def bind_threads_of(s: Schedule, block: BlockRef, *axes: str) -> None:
    """Binds the last loops of *block* to *axes*, the outermost first."""
    loops: list[LoopRef] = list(s.loops(block))[-len(axes) :]
    for f, axis in zip(loops, axes, strict=True):
        s.bind(f, axis)


def tiled_matmul(case: Case, tile: int = 16) -> Schedule:
    """`C = A @ B` in square tiles that the threads of a block fetch together into shared memory."""
    s = Schedule(case.program)
    c = s.block("C")
    i, j, k = s.loops(c)
    by, ty = s.split(i, [None, tile])
    bx, tx = s.split(j, [None, tile])
    ko, ki = s.split(k, [None, tile])
    s.reorder([by, bx, ko, ty, tx, ki])
    copies = [s.cache_read(c, x, "shared") for x in ("A", "B")]
    start = s.decompose_reduction(c, ko)
    for copy in copies:
        s.compute_at(copy, ko)
    for block in (start, *copies):
        bind_threads_of(s, block, "threadIdx.y", "threadIdx.x")
    for f, axis in ((by, "blockIdx.y"), (bx, "blockIdx.x"), (ty, "threadIdx.y"), (tx, "threadIdx.x")):
        s.bind(f, axis)
    return s


def naive_matmul(case: Case, tile: int = 16) -> Schedule:
    """`C = A @ B`, each thread an element, everything in global memory."""
    s = Schedule(case.program)
    i, j, _ = s.loops(s.block("C"))
    by, ty = s.split(i, [None, tile])
    bx, tx = s.split(j, [None, tile])
    s.reorder([by, bx, ty, tx])
    for f, axis in ((by, "blockIdx.y"), (bx, "blockIdx.x"), (ty, "threadIdx.y"), (tx, "threadIdx.x")):
        s.bind(f, axis)
    return s
