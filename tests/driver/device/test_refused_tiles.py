"""Tiles that lowering refuses: the next one by cost is taken, and a kernel for which all are refused has none."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from tests.lower.threaded import run_case
from tests.schedule.programs import matmul

from weft import te
from weft.driver import kernel as kernels
from weft.driver.device.lowering_trial import MOST_REFUSED
from weft.driver.kernel import lower_kernel
from weft.driver.kernel_request import KernelRequest, Tensors
from weft.ir import Const
from weft.loop import Alloc, Program, statements
from weft.lower import lower
from weft.schedule import plans
from weft.support.dtypes import f32
from weft.support.errors import LoweringError
from weft.targets.grid_machines import OPENCL


def product() -> Tensors:
    a, b = (te.placeholder((64, 64), f32, name) for name in "AB")
    k = te.reduce_axis(64, "k")
    return [a, b], [te.compute((64, 64), lambda i, j: te.sum_(a[i, k] * b[k, j], [k]), "C")]


def shared_elements(program: Program) -> int:
    """Returns how many elements a block of threads has in shared memory."""
    found = [s.buffer for f in program.functions for s in statements(f.body) if isinstance(s, Alloc)]
    sizes = [b.shape[0] for b in found if b.scope == "shared"]
    return sum([int(n.value) for n in sizes if isinstance(n, Const)])


def lowered() -> Program:
    flat = lower_kernel(KernelRequest("f", product), OPENCL).forms.flat
    assert isinstance(flat, Program)
    return flat


@pytest.fixture
def refuse(monkeypatch: pytest.MonkeyPatch) -> Callable[[int], list[int]]:
    """Has lowering refuse kernels with more elements in shared memory; returns how many each of these has."""

    def limited(most: int) -> list[int]:
        refused: list[int] = []

        def limited_lower(program: Program, *args: Any, **kwargs: Any) -> Program:
            made = lower(program, *args, **kwargs)
            if shared_elements(made) > most:
                refused.append(shared_elements(made))
                raise LoweringError("the device is too small")
            return made

        monkeypatch.setattr(kernels, "lower", limited_lower)
        return refused

    return limited


def test_the_next_tile_is_taken(refuse: Callable[[int], list[int]]) -> None:
    before = shared_elements(lowered())
    refused = refuse(before - 1)
    made = lowered()
    assert 0 < shared_elements(made) < before
    assert refused[:2] == [before, before]  # the plan as it was, and its tile once that is tried
    run_case(matmul(64, 64, 64), made, OPENCL)


def test_without_any_tile(refuse: Callable[[int], list[int]]) -> None:
    refused = refuse(0)
    assert not shared_elements(lowered())
    assert len(refused) <= 1 + MOST_REFUSED


def test_a_plan_that_is_given_is_not_replaced(refuse: Callable[[int], list[int]]) -> None:
    refused = refuse(0)
    plan = next(iter(plans(KernelRequest("f", product).program, OPENCL)))
    with pytest.raises(LoweringError, match="the device is too small"):
        lower_kernel(KernelRequest("f", product, plan=plan), OPENCL)
    assert len(refused) == 1
