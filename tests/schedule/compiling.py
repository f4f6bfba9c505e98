"""Lowering scheduled programs and running them as machine code."""

from __future__ import annotations

from typing import Any

import numpy as np
from tests.lower.running import results
from tests.schedule.programs import Case
from tests.schedule.running import check
from tests.support.jit import load

from weft.loop import Program, verify
from weft.lower import lower
from weft.targets import Target, can_run, cpu

HERE: Target = next(t for t in (cpu("avx512"), cpu("avx2"), cpu("sse4")) if can_run(t))
"""The widest target that this machine runs."""


def check_compiled(case: Case, program: Program, seed: int = 0) -> Program:
    """Does what `check` does, for the lowered program and its machine code too; returns the lowered program."""
    check(case, program, seed)
    flat = lower(program, HERE, verify=True)
    verify(flat, flat=True)
    values: dict[str, Any] = case.arrays(seed)
    expected = case.expected(values)
    given = [values[p.name] for p in program.entry.params]
    left = dict(zip([p.name for p in program.entry.params], results(flat, given), strict=True))
    _, entry = load(flat, HERE)
    entry(*given)
    for name, wanted in zip(case.outputs(), expected, strict=True):
        np.testing.assert_array_equal(left[name], wanted.reshape(-1), err_msg=f"{name} differs as lowered")
        np.testing.assert_array_equal(values[name], wanted, err_msg=f"{name} differs as machine code")
    return flat


def lowered(program: Program) -> Program:
    """The lowered program for AVX-512, so that its text is the same on every machine."""
    return lower(program, cpu("avx512"))
