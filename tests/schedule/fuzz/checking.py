"""Whether a scheduled program is right: well-formed, and the same as NumPy when interpreted, lowered, and compiled."""

from __future__ import annotations

from typing import Any

from tests.lower.running import results
from tests.schedule.programs import Case
from tests.schedule.running import check

from weft.driver.function import NativeFunction
from weft.loop import For, LoopKind, Program, Stmt, map_stmts, verify
from weft.targets import host


def unbound(program: Program) -> Program:
    """Runs the loops that are bound to a device's threads one iteration after another: a CPU has no such threads."""

    def change(s: Stmt) -> Stmt | None:
        if not isinstance(s, For) or s.kind is not LoopKind.BOUND:
            return None
        return For(s.var, s.begin, s.extent, LoopKind.SERIAL, s.body, ())

    return Program(tuple([f.with_body(map_stmts(f.body, change)) for f in program.functions]))


def check_everything(case: Case, program: Program) -> None:
    """Fails unless *program* is well-formed and computes what the oracle of *case* does, at each stage of its way to code.

    Interpreted, in another order of the iterations that are free of one; lowered, interpreted; and as machine code.
    """
    check(case, program)
    native = NativeFunction(unbound(program), host())
    verify(native.flat, flat=True)
    values: dict[str, Any] = case.arrays()
    expected = case.expected(values)
    given = [values[p.name] for p in program.entry.params]
    left = dict(zip([p.name for p in program.entry.params], results(native.flat, given), strict=True))
    native(*given, threads=2)
    for name, wanted in zip(case.outputs(), expected, strict=True):
        case.check(left[name], wanted.reshape(-1), f"{name} differs as lowered:\n{native.flat}")
        case.check(values[name], wanted, f"{name} differs as machine code:\n{native.flat}")
