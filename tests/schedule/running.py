"""Running scheduled programs against their oracle, with the freedom that their loops' kinds give taken to the full."""

from __future__ import annotations

from collections.abc import Callable
from math import gcd
from typing import Any

import numpy as np
import pytest
from tests.schedule.programs import Case

from weft.codegen.interp import run
from weft.ir import ONE, Const, Expr, index, substitute
from weft.loop import (
    Buffer,
    For,
    LoopKind,
    Program,
    Stmt,
    Thread,
    map_stmts,
    parse_program,
    statements,
    verify,
    without_notes,
)
from weft.loop.alpha_equivalence import check_same
from weft.schedule import LoopRef, Schedule
from weft.support.errors import ScheduleError

APART = (LoopKind.PARALLEL, LoopKind.VECTORIZED, LoopKind.BOUND)


def disordered(program: Program) -> Program:
    """Runs parallel, bound and vectorized loops one iteration at a time in another order, which must not matter."""

    def change(s: Stmt) -> Stmt | None:
        if not isinstance(s, For) or s.kind not in APART:
            return None
        body = substitute(s.body, {s.var: _elsewhere(s)})
        return For(s.var, s.begin, s.extent, LoopKind.SERIAL, body, without_notes(s.notes, Thread))

    return Program(tuple([f.with_body(map_stmts(f.body, change)) for f in program.functions]))


def _elsewhere(loop: For) -> Expr:
    """A permutation of the iterations: a step that is prime to their number, else from the last to the first."""
    if isinstance(loop.extent, Const):
        n = int(loop.extent.value)
        step = next((k for k in range(n // 2 + 1, n) if gcd(k, n) == 1), 1)
        if step > 1:
            return (loop.var * index(step) + index(n // 2)) % loop.extent
    return loop.extent - ONE - loop.var


def check(case: Case, program: Program, seed: int = 0) -> None:
    """Fails unless *program* is well-formed, reads back from its text, and computes what *case* should."""
    verify(program)
    check_same(parse_program(str(program)), program)
    check_results(case, program, seed)


def check_results(case: Case, program: Program, seed: int = 0) -> None:
    """Fails unless *program* computes what the oracle of *case* does, in whatever order its loops allow."""
    values: dict[str, Any] = case.arrays(seed)
    expected = case.expected(values)
    run(disordered(program), values)
    for name, wanted in zip(case.outputs(), expected, strict=True):
        case.check(values[name], wanted, f"{name} differs:\n{program}")


def transition(before: Program, after: Program) -> str:
    """The text of a step: the program before, and after."""
    return f"{before}\n{'-' * 24} becomes\n\n{after}"


def refusal(attempt: Callable[[], object]) -> str:
    """The whole message with which *attempt* is refused."""
    with pytest.raises(ScheduleError) as caught:
        attempt()
    return f"{caught.value}\n"


def same_results(before: Program, after: Program, seed: int = 0) -> None:
    """Fails unless two programs of constant shapes leave the same in all of their parameters."""
    verify(after)
    results = []
    for program in (before, disordered(after)):
        made = np.random.default_rng(seed)
        buffers = [p for p in program.entry.params if isinstance(p, Buffer)]
        values = [made.integers(0, 5, [_constant(s) for s in p.shape]).astype(p.dtype.numpy) for p in buffers]
        run(program, values)
        results.append(values)
    for p, a, b in zip(before.entry.params, *results, strict=True):
        np.testing.assert_array_equal(b, a, err_msg=f"{p.name} differs:\n{after}")


def _constant(e: Expr) -> int:
    assert isinstance(e, Const)
    return int(e.value)


def loop(s: Schedule, name: str) -> LoopRef:
    """The first loop called *name*."""
    return next(LoopRef(f.var) for f in statements(s.function.body) if isinstance(f, For) and f.var.name == name)
