"""What is seldom chosen is computed only where some lane chooses it, and nothing of it is hoisted."""

from __future__ import annotations

import numpy as np
import pytest
from tests.codegen.llvm.harness import TARGETS, call, elementwise, machine_for

from weft.codegen.llvm.ir_module import write_module
from weft.ir import Expr, apply, broadcast, const, select
from weft.loop import Program
from weft.support.dtypes import f32

COUNT = 64


def rooted(x: Expr) -> Expr:
    """The root of a large element and twice any other; the root of the constant needs no element at all."""
    large = apply("unlikely", x > 100.0)
    constant = apply("sqrt", broadcast(const(2.0, f32), x.dtype.lanes))
    return select(large, apply("sqrt", x) + constant, x + x) + apply("abs", x)


@pytest.mark.sampled(8)
@pytest.mark.parametrize("level", TARGETS)
@pytest.mark.parametrize("large", [[], [0], [5, 6, 63], range(COUNT)], ids=["none", "one", "some", "all"])
@pytest.mark.parametrize("vectors", [False, True], ids=["scalars", "vectors"])
def test_values(level: str, large: list[int], vectors: bool) -> None:
    lanes = TARGETS[level].lanes(32) if vectors else 1
    machine = machine_for([elementwise("f", [f32], f32, lanes, COUNT, rooted)], TARGETS[level])
    x = np.linspace(-50, 50, COUNT, dtype=np.float32)
    x[list(large)] += 1000
    y = np.zeros_like(x)
    call(machine, "f", x, y)
    with np.errstate(invalid="ignore"):
        np.testing.assert_allclose(y, np.where(x > 100, np.sqrt(x) + 2**0.5, x + x) + abs(x), rtol=1e-6)


def test_the_code_is_behind_a_branch() -> None:
    target = TARGETS["sse4"]
    text = write_module(Program((elementwise("f", [f32], f32, 4, COUNT, rooted),)), target).text
    before, _, after = text.partition("\nseldom.")
    seldom, _, rest = after.partition("\njoin.")
    assert before.splitlines()[-1].strip().startswith("br i1")
    assert [part.count("call <4 x float> @llvm.sqrt") for part in (before, seldom, rest)] == [0, 2, 0]
    assert "phi <4 x float>" in rest.splitlines()[1]
