"""How much processor time a kernel takes from its formulas to its module: a tuner builds thousands."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import onnx
import pytest
from onnx import helper, numpy_helper
from tests.replay.machines import MACHINES
from tests.support.yardstick import share

from weft.cli.onnx_builder import GraphBuilder, conv
from weft.codegen import backend_of
from weft.driver.build import fuse_graph, kernel_requests, optimize_graph, values_in_place
from weft.driver.kernel import lower_kernel
from weft.driver.kernel_request import KernelRequest
from weft.driver.options import CompileOptions
from weft.frontends import to_graph
from weft.targets import Target

SERVER = MACHINES["avx512"]
SMALL_L2 = SERVER.having(tune="znver4", fma_per_cycle=1, half_rate_wide=True, l1=32 << 10, l2=1 << 20)


def convolution() -> onnx.ModelProto:
    """3 x 3 taps on 28 x 28 places, 128 channels to 128."""
    g = GraphBuilder("convolution")
    g.output(conv(g, g.input("x", (1, 128, 28, 28)), (128, 128), 3, 1, padding=1), "y")
    return g.model()


def product() -> onnx.ModelProto:
    """A product of 512 x 512 x 512."""
    x, y = (helper.make_tensor_value_info(n, onnx.TensorProto.FLOAT, (512, 512)) for n in "xy")
    w = numpy_helper.from_array(np.zeros((512, 512), np.float32), "w")
    graph = helper.make_graph([helper.make_node("MatMul", ["x", "w"], ["y"])], "product", [x], [y], [w])
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=9)


def first_kernel(model: onnx.ModelProto, target: Target) -> KernelRequest:
    options = CompileOptions(precision="strict")
    fused = fuse_graph(optimize_graph(to_graph(model), target, options, None), target, options)
    return next(iter(kernel_requests(fused, options, values_in_place(fused, options, target)).values()))


@pytest.mark.timed
@pytest.mark.parametrize(
    ("model", "target", "limit", "most_text"),
    [
        (convolution(), SERVER, 0.12, 120_000),
        (convolution(), SMALL_L2, 0.12, 120_000),
        (product(), SERVER, 0.045, 15_000),
    ],
)
def test_a_kernel(model: onnx.ModelProto, target: Target, limit: float, most_text: int) -> None:
    request = first_kernel(model, target)

    def build() -> None:
        source = lower_kernel(replace(request), target).source
        assert len(source.text) <= most_text
        backend_of(target).compile(source, target)

    assert share(limit, build) < 1
