"""Which types a model needs that a device lacks is read from the model."""

from __future__ import annotations

import onnx
import pytest
from onnx import TensorProto, helper
from tests.driver.device.lacking_types import lacking, model_types
from tests.driver.device.test_models_on_device import doubled

from weft.targets import parse_target


def cast_and_back(by: int) -> onnx.ModelProto:
    """Returns a model from float32 to float32 that computes a cast to another type."""
    x, y = (helper.make_tensor_value_info(n, TensorProto.FLOAT, [2]) for n in "xy")
    nodes = [
        helper.make_node("Cast", ["x"], ["t"], to=by),
        helper.make_node("Cast", ["t"], ["y"], to=TensorProto.FLOAT),
    ]
    return helper.make_model(helper.make_graph(nodes, "g", [x], [y]), opset_imports=[helper.make_opsetid("", 21)])


@pytest.mark.parametrize(
    ("model", "opencl", "webgpu"),
    [
        (doubled(TensorProto.FLOAT, [2]), set(), set()),
        (doubled(TensorProto.DOUBLE, [2]), set(), {TensorProto.DOUBLE}),
        (doubled(TensorProto.STRING, [2]), {TensorProto.STRING}, {TensorProto.STRING}),
        (cast_and_back(TensorProto.DOUBLE), set(), {TensorProto.DOUBLE}),
        (cast_and_back(TensorProto.INT64), set(), set()),
    ],
)
def test_types_that_a_device_lacks(model: onnx.ModelProto, opencl: set[int], webgpu: set[int]) -> None:
    assert lacking(model_types(model), parse_target("opencl -device=any")) == opencl
    assert lacking(model_types(model), parse_target("webgpu")) == webgpu
