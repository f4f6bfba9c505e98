"""Networks of shuffles are fenced: LLVM selects an instruction for each, and does not look for ways to merge many."""

from __future__ import annotations

import numpy as np
import pytest
from tests.codegen.llvm.harness import TARGETS, call, is_llvm, machine_for

from weft.codegen.llvm.ir_module import llvm_text
from weft.codegen.llvm.object_code import assembly
from weft.ir import Expr, Ramp, Var, index
from weft.loop import Buffer, Export, Function, Let, Load, Program, Stmt, Store, seq
from weft.lower.loops.transposition_network import transposed
from weft.support.dtypes import DType, f32, i32
from weft.targets import cpu


def transposition(lanes: int, dtype: DType) -> Function:
    """Transposes a square of *lanes* rows, by parts of four elements."""
    x, y = Buffer("x", [lanes * lanes], dtype), Buffer("y", [lanes * lanes], dtype)
    bound: list[tuple[Var, Expr]] = []

    def name(e: Expr) -> Expr:
        bound.append((Var("v", e.dtype), e))
        return bound[-1][0]

    def row(k: int) -> tuple[Expr]:
        return (Ramp(index(k * lanes), index(1), lanes),)

    columns = transposed([name(Load(x, row(k))) for k in range(lanes)], 4, name)
    body: Stmt = seq(*[Store(y, row(k), c, None) for k, c in enumerate(columns)])
    for var, value in reversed(bound):
        body = Let(var, value, body)
    return Function("f", (x, y), body, (Export(),))


@pytest.mark.parametrize("name", [n for n in TARGETS if is_llvm(n)])
def test_a_network_transposes(name: str) -> None:
    machine = machine_for([transposition(8, f32)], TARGETS[name])
    x, y = np.arange(64, dtype=np.float32), np.zeros(64, np.float32)
    call(machine, "f", x, y)
    np.testing.assert_array_equal(y.reshape(8, 8), x.reshape(8, 8).T)


def test_every_second_level_is_fenced() -> None:
    made = llvm_text(Program((transposition(16, f32),)), cpu("avx512"))
    assert made.count("= shufflevector") == 64, "16 in each of four levels"
    assert made.count("= call <16 x float> @llvm.arithmetic.fence") == 32
    assert "arithmetic.fence" not in llvm_text(Program((transposition(16, i32),)), cpu("avx512")), (
        "it is of floats only"
    )


def test_a_fence_is_no_instruction() -> None:
    text = assembly(Program((transposition(16, f32),)), cpu("avx512"))
    shuffles = [
        x for x in text.splitlines() if x.lstrip().startswith(("vunpck", "vshuf", "vperm", "vinsert", "vextract"))
    ]
    assert len(shuffles) == 64
    assert "%rsp" not in text, "nothing is spilled"
