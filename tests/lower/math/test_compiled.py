"""Compiled for this machine, where products and sums are contracted, the functions keep their stated errors."""

from __future__ import annotations

import numpy as np
import pytest
from tests.codegen.llvm.harness import TARGETS, call, elementwise, machine_for
from tests.lower.math.test_expansions import EXACT, in_double
from tests.lower.math_harness import every_nth, ulp_error

from weft.ir import Apply, Expr
from weft.loop import Function
from weft.lower.math.expand import expand
from weft.lower.math.expansions import EXPANSIONS
from weft.support.dtypes import f32

NAMES = [*EXACT]
COUNT = 1 << 16


@pytest.mark.sampled(2)
@pytest.mark.parametrize("level", TARGETS)
def test_compiled_code_is_as_accurate(level: str) -> None:
    target = TARGETS[level]
    lanes = target.lanes(32)

    def applied(name: str) -> Function:
        def op(x: Expr) -> Expr:
            return expand(Apply(name, (x,)), target.isa.native)

        return elementwise(name, [f32], f32, lanes, COUNT, op)

    machine = machine_for([applied(name) for name in NAMES], target)
    for name in NAMES:
        x = every_nth(f32, (1 << 16) + 1, first=77)[:COUNT]
        x = np.resize(x, COUNT)
        y = np.zeros_like(x)
        call(machine, name, x, y)
        error = ulp_error(y, in_double(name, x))
        assert error.max() <= EXPANSIONS[name].max_ulp[f32].of(target.isa.fma), (name, x[error.argmax()])
