"""Large loops move their own pointers, which LLVM's loop strength reduction does not look at."""

from __future__ import annotations

import numpy as np
import pytest
from tests.codegen.llvm.harness import TARGETS, call, is_llvm, machine_for

from weft.codegen.llvm.ir_module import llvm_text
from weft.codegen.llvm.statements.loop_counters import MOST_REDUCED
from weft.ir import Var
from weft.loop import Buffer, Export, Function, LoopKind, Program, for_, store
from weft.loop.nodes import load
from weft.support.dtypes import f32

ROWS, STEPS, PLACES, BEHIND = 3, 5, MOST_REDUCED + 8, 7
STRIDE = 48


def walk(places: int, begin: int = 0) -> Function:
    """Adds to each of *places* sums an element of x for each of three rows of steps; the loops count from *begin*."""
    x, y = (
        Buffer("x", [(ROWS + begin) * 1000 + (STEPS + begin) * STRIDE + places * BEHIND], f32),
        Buffer("y", [places], f32),
    )
    r, k, j = Var("r"), Var("k"), Var("j")
    add = store(y, [j], load(y, j) + load(x, r * 1000 + k * STRIDE + j * BEHIND))
    body = for_(j, places, add, LoopKind.UNROLLED)
    return Function("f", (x, y), for_(r, ROWS, for_(k, STEPS, body, begin=begin), begin=begin), (Export(),))


@pytest.mark.sampled(5)
@pytest.mark.parametrize("name", TARGETS)
@pytest.mark.parametrize("places", [2, PLACES])
@pytest.mark.parametrize("begin", [0, 2])
def test_sums_of_a_walk(name: str, places: int, begin: int) -> None:
    made = walk(places, begin)
    machine = machine_for([made], TARGETS[name])
    x = np.arange(int(made.params[0].shape[0].value), dtype=np.float32)  # type: ignore[union-attr]
    y = np.zeros(places, np.float32)
    call(machine, "f", x, y)
    rows, steps = range(begin, begin + ROWS), range(begin, begin + STEPS)
    for j in range(places):
        assert y[j] == sum(x[r * 1000 + k * STRIDE + j * BEHIND] for r in rows for k in steps)


@pytest.mark.parametrize("name", [n for n in TARGETS if is_llvm(n)])
def test_only_large_loops_are_opaque(name: str) -> None:
    large, small, late = (
        llvm_text(Program((made,)), TARGETS[name]) for made in (walk(PLACES), walk(2), walk(PLACES, 2))
    )
    assert large.count("= phi ptr") == 2, "the pointer to the row, and to the step in it"
    assert large.count("call i64 @llvm.expect.i64") == 2
    assert "phi ptr" not in small
    assert "expect" not in small
    assert late.count("call i64 @llvm.expect.i64") == 2
    assert "phi ptr" not in late, "its first pointer would have to be computed"
