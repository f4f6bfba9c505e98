"""The plan of a kernel: applied to the kernel again it gives the same code; others are listed, and are schedules as well."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Final

import numpy as np
import onnx
import pytest
from tests.models import lstm_step, tiny_bert_layer, tiny_mobilenet, tiny_resnet
from tests.replay.machines import MACHINES

from weft.codegen.interp import run
from weft.cost import Choosing, cheapest, parse_plan
from weft.driver.build import fuse_graph, kernel_requests, optimize_graph, values_in_place
from weft.driver.kernel import lower_kernel
from weft.driver.kernel_request import KernelRequest
from weft.driver.options import CompileOptions
from weft.frontends import to_graph
from weft.loop import Program, print_program
from weft.ops import OPERATORS
from weft.schedule import apply_plan, carry_out, plans, schedule_program
from weft.support.dtypes import f32
from weft.targets import Target
from weft.te import placeholder, to_program

MODELS: Final[dict[str, Callable[[], onnx.ModelProto]]] = {
    "resnet": tiny_resnet,
    "mobilenet": tiny_mobilenet,
    "lstm": lstm_step,
    "bert": tiny_bert_layer,
}


def requests(model: onnx.ModelProto, target: Target) -> Iterator[KernelRequest]:
    options = CompileOptions()
    fused = fuse_graph(optimize_graph(to_graph(model), target, options, cache=None), target, options)
    yield from kernel_requests(fused, options, values_in_place(fused, options, target)).values()


@pytest.mark.sampled(3)
@pytest.mark.parametrize("level", MACHINES)
@pytest.mark.parametrize("name", MODELS)
def test_a_plan_read_back_gives_the_same_code(name: str, level: str) -> None:
    target = MACHINES[level]
    for request in requests(MODELS[name](), target):
        asked = Choosing(target)
        carry_out(request.program, asked)
        text = str(asked.plan)
        again = KernelRequest(request.name, request.tensors, request.sizes, plan=parse_plan(text))
        once = KernelRequest(request.name, request.tensors, request.sizes)
        assert lower_kernel(again, target).source == lower_kernel(once, target).source, text


def product(m: int, n: int, k: int) -> Program:
    inputs = (placeholder((m, k), f32, "a"), placeholder((k, n), f32, "b"))
    return to_program(inputs, OPERATORS["matmul"](inputs, {}))


@pytest.mark.sampled(1)
@pytest.mark.parametrize("shape", [(4, 20, 9), (1, 12, 16), (7, 33, 5)])
def test_every_plan_of_a_product_is_right(shape: tuple[int, int, int]) -> None:
    m, n, k = shape
    program, machine = product(m, n, k), MACHINES["sse4"]
    rng = np.random.default_rng(0)
    a, b = rng.standard_normal((m, k), np.float32), rng.standard_normal((k, n), np.float32)
    texts = set[str]()
    for count, plan in enumerate(plans(program, machine)):
        s = apply_plan(program, plan)
        if count == 0:
            assert print_program(s.program) == print_program(schedule_program(program, machine).program)
        text = print_program(s.program)
        if text not in texts and len(texts) < 12:
            out = np.zeros((m, n), np.float32)
            run(s.program, [a, b, out])
            np.testing.assert_allclose(out, a @ b, rtol=1e-5, atol=1e-5, err_msg=str(plan))
        texts.add(text)
    assert len(texts) > 3


def test_choose_is_an_argument() -> None:
    program, machine = product(8, 64, 32), MACHINES["avx2"]
    dearest = schedule_program(program, machine, lambda found: max(found, key=lambda c: c.cycles))
    assert print_program(dearest.program) != print_program(schedule_program(program, machine, cheapest).program)
