"""Sequences and optional values through `InferenceSession`, as ONNX Runtime takes and gives them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import onnxruntime
import pytest
from onnx import ModelProto, TensorProto, helper
from tests.frontends.onnx.nodes import floats, model_of, node

import weft


def turned() -> ModelProto:
    """Returns a model of a sequence `s` of matrices, which gives it with `x` at the place `p`, and how many there are then."""
    nodes = [node("SequenceInsert", "s x p", "y"), node("SequenceLength", "y", "count")]
    kind = helper.make_sequence_type_proto(helper.make_tensor_type_proto(TensorProto.FLOAT, ["n", "m"]))
    model = model_of(nodes, {"x": (TensorProto.FLOAT, [1, 2]), "p": (TensorProto.INT64, [])}, ("y", "count"))
    model.graph.input.append(helper.make_value_info("s", kind))
    return model


def assert_same(ours: list[Any], theirs: list[Any]) -> None:
    for a, b in zip(ours, theirs, strict=True):
        assert isinstance(a, list) == isinstance(b, list)
        assert [x.shape for x in a] == [x.shape for x in b] if isinstance(b, list) else np.shape(a) == np.shape(b)
        for x, y in zip(a, b, strict=True) if isinstance(b, list) else [(a, b)]:
            np.testing.assert_array_equal(x, y)


@pytest.mark.parametrize("saved", [False, True])
def test_lists_are_taken_and_given(saved: bool, tmp_path: Path) -> None:
    model = turned().SerializeToString()
    theirs = onnxruntime.InferenceSession(model, providers=["CPUExecutionProvider"])
    ours: Any = weft.InferenceSession(model)
    if saved:
        ours.model.save(tmp_path / "turned.weft")
        ours = weft.InferenceSession(str(tmp_path / "turned.weft"))
    kinds = [[(a.name, a.type) for a in session.get_inputs()] for session in (ours, theirs)]
    assert kinds[0] == kinds[1]
    assert [(a.name, a.type) for a in ours.get_outputs()] == [("y", "seq(tensor(float))"), ("count", "tensor(int64)")]
    for given in ([floats(2, 3), floats(1, 4)], [floats(3, 3)]):
        feed = {"s": given, "x": floats(1, 2, seed=5), "p": np.array(-1)}
        assert_same(ours.run(None, feed), theirs.run(None, feed))
        assert_same(ours.run(["count", "y"], feed), theirs.run(["count", "y"], feed))
    with pytest.raises(weft.InputError, match="z"):
        ours.run(None, {**feed, "z": np.array(1)})


def test_a_value_may_be_absent() -> None:
    model = model_of([node("OptionalHasElement", "o", "has")], {}, ("has",), opset=18)
    kind = helper.make_optional_type_proto(helper.make_tensor_type_proto(TensorProto.FLOAT, [4]))
    model.graph.input.append(helper.make_value_info("o", kind))
    session = weft.InferenceSession(model.SerializeToString())
    assert [(a.name, a.type, a.shape) for a in session.get_inputs()] == [("o", "optional(tensor(float))", [4])]
    assert session.run(None, {"o": None}) == [False]
    assert session.run(None, {"o": floats(4)}) == [True]
