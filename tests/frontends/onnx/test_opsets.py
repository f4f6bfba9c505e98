"""What changed between operator sets: attributes that became inputs, other defaults, other meanings; against ONNX Runtime."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from onnx import ModelProto, TensorProto, helper
from tests.frontends.onnx.nodes import (
    Array,
    by_runtime,
    check_like_runtime,
    float_inputs,
    floats,
    imported,
    int64s,
    model_of,
    node,
    single,
)
from tests.models import BUILDERS, random_inputs

from weft.frontends.onnx.importer import from_onnx

X: Array = floats(2, 3, 4)
OPSETS = [7, 9, 11, 12, 13, 15, 18, 20]


def variant(op: str, opset: int, since: int, name: str, value: Array, **attributes: Any) -> ModelProto:
    """A node on X of which *name* is an attribute before operator set *since*, then the second input."""
    if opset < since:
        return single(op, {"x": X}, opset=opset, **{name: value.tolist()}, **attributes)
    return single(op, {"x": X}, {name: value}, opset=opset, **attributes)


@pytest.mark.parametrize("opset", OPSETS)
@pytest.mark.parametrize("op", ["ReduceSum", "ReduceMean", "ReduceMax", "ReduceMin", "ReduceProd", "ReduceL2"])
def test_axes_of_reductions(op: str, opset: int) -> None:
    since = 13 if op == "ReduceSum" else 18
    for axes, keepdims in ((int64s(1), 1), (int64s(-1, 0), 0)):
        check_like_runtime(variant(op, opset, since, "axes", axes, keepdims=keepdims), {"x": X})


@pytest.mark.parametrize("opset", OPSETS)
@pytest.mark.parametrize("op", ["ReduceSum", "ReduceMean"])
def test_reductions_without_axes(op: str, opset: int) -> None:
    check_like_runtime(single(op, {"x": X}, opset=opset), {"x": X})
    check_like_runtime(single(op, {"x": X}, opset=opset, keepdims=0), {"x": X})


@pytest.mark.parametrize("opset", [18, 20])
def test_no_axes_may_mean_none(opset: int) -> None:
    check_like_runtime(single("ReduceSum", {"x": X}, opset=opset, noop_with_empty_axes=1), {"x": X})


@pytest.mark.parametrize("opset", OPSETS)
def test_squeeze_and_unsqueeze(opset: int) -> None:
    attributes: list[dict[str, Any]] = [{"axes": [0, 3]}, {"axes": [3]}] if opset < 13 else [{}, {}]
    nodes = [
        node("Unsqueeze", "x" if opset < 13 else "x a", "u", **attributes[0]),
        node("Squeeze", "u" if opset < 13 else "u b", **attributes[1]),
    ]
    weights = {} if opset < 13 else {"a": int64s(0, -2), "b": int64s(-2)}
    graph = check_like_runtime(model_of(nodes, float_inputs(x=X.shape), weights=weights, opset=opset), {"x": X})
    assert graph.outputs[0].static_shape == (1, 2, 3, 4)


@pytest.mark.parametrize("opset", OPSETS)
def test_squeeze_of_all(opset: int) -> None:
    check_like_runtime(single("Squeeze", {"x": floats(1, 3, 1, 2)}, opset=opset), {"x": floats(1, 3, 1, 2)})


@pytest.mark.parametrize("opset", OPSETS)
@pytest.mark.parametrize("op", ["Softmax", "LogSoftmax"])
def test_softmax_was_over_all_dimensions_from_the_axis(op: str, opset: int) -> None:
    variants: list[dict[str, Any]] = [{}, {"axis": 0}, {"axis": 1}, {"axis": 2}]
    for attributes in variants:
        check_like_runtime(single(op, {"x": X}, opset=opset, **attributes), {"x": X})


@pytest.mark.parametrize("opset", OPSETS)
def test_clip(opset: int) -> None:
    if opset < 11:
        bounds: list[dict[str, Any]] = [{"min": -0.5, "max": 0.5}, {"min": 0.0}, {"max": 0.25}, {}]
        for attributes in bounds:
            check_like_runtime(single("Clip", {"x": X}, opset=opset, **attributes), {"x": X})
        return
    low, high = np.array(-0.5, np.float32), np.array(0.25, np.float32)
    for inputs in ("x low high", "x low", "x - high", "x"):
        weights = {k: v for k, v in {"low": low, "high": high}.items() if k in inputs}
        model = model_of([node("Clip", inputs)], float_inputs(x=X.shape), weights=weights, opset=opset)
        check_like_runtime(model, {"x": X})


@pytest.mark.parametrize("opset", OPSETS)
def test_slice(opset: int) -> None:
    if opset < 10:
        ranges: list[dict[str, Any]] = [
            {"starts": [0, 1], "ends": [2, 3]},
            {"starts": [-2], "ends": [2**40], "axes": [2]},
        ]
        for attributes in ranges:
            check_like_runtime(single("Slice", {"x": X}, opset=opset, **attributes), {"x": X})
        return
    for starts, ends, axes, steps in ((0, 2, 1, 1), (-1, -5, 2, -1), (3, -(2**62), -1, -2), (-100, 100, 0, 2)):
        weights = {k: int64s(v) for k, v in zip("sead", (starts, ends, axes, steps), strict=True)}
        check_like_runtime(single("Slice", {"x": X}, weights, opset=opset), {"x": X})


@pytest.mark.parametrize("opset", OPSETS)
def test_split(opset: int) -> None:
    extra = {"num_outputs": 2} if opset >= 18 else {}
    equal = model_of([node("Split", "x", "y z", axis=2, **extra)], float_inputs(x=X.shape), ["y", "z"], opset=opset)
    check_like_runtime(equal, {"x": X})
    if opset < 13:
        parts = model_of(
            [node("Split", "x", "y z", axis=1, split=[1, 2])], float_inputs(x=X.shape), ["y", "z"], opset=opset
        )
    else:
        parts = model_of(
            [node("Split", "x s", "y z", axis=1)], float_inputs(x=X.shape), ["y", "z"], {"s": int64s(1, 2)}, opset
        )
    check_like_runtime(parts, {"x": X})


@pytest.mark.parametrize("opset", [18, 20])
def test_split_with_a_smaller_last_piece(opset: int) -> None:
    model = model_of(
        [node("Split", "x", "y z", axis=1, num_outputs=2)], float_inputs(x=X.shape), ["y", "z"], opset=opset
    )
    graph = check_like_runtime(model, {"x": X})
    assert [v.static_shape for v in graph.outputs] == [(2, 2, 4), (2, 1, 4)]


@pytest.mark.parametrize("opset", OPSETS)
@pytest.mark.parametrize("mode", ["constant", "edge", "reflect"])
def test_pad(mode: str, opset: int) -> None:
    pads = [0, 1, 2, 1, 0, 1]
    if opset < 11:
        check_like_runtime(single("Pad", {"x": X}, opset=opset, mode=mode, pads=pads, value=0.5), {"x": X})
        return
    weights = {"p": int64s(*pads), "v": np.array(0.5, np.float32)}
    check_like_runtime(single("Pad", {"x": X}, weights, opset=opset, mode=mode), {"x": X})


@pytest.mark.parametrize("opset", [18, 20])
def test_pad_of_some_axes(opset: int) -> None:
    weights = {"p": int64s(1, 2), "v": np.array(0.5, np.float32), "a": int64s(-1)}
    check_like_runtime(single("Pad", {"x": X}, weights, opset=opset), {"x": X})


@pytest.mark.parametrize("opset", OPSETS)
def test_dropout_is_nothing(opset: int) -> None:
    graph = check_like_runtime(single("Dropout", {"x": X}, opset=opset), {"x": X})
    assert graph.nodes == []


@pytest.mark.parametrize("opset", OPSETS)
def test_batch_normalization(opset: int) -> None:
    weights = {k: np.abs(floats(3, seed=n)) + 0.5 for n, k in enumerate("sbmv")}
    check_like_runtime(single("BatchNormalization", {"x": X}, weights, opset=opset, epsilon=1e-3), {"x": X})


@pytest.mark.parametrize("opset", OPSETS)
def test_resize_and_upsample(opset: int) -> None:
    x, scales = floats(1, 2, 3, 4), np.array([1, 1, 2, 2], np.float32)
    for mode in ("nearest", "linear"):
        if opset == 7:
            model = single("Upsample", {"x": x}, opset=7, mode=mode, scales=scales.tolist())
        elif opset == 9:
            model = single("Upsample", {"x": x}, {"s": scales}, opset=9, mode=mode)
        else:
            roi = np.zeros(0, np.float32)
            model = single("Resize", {"x": x}, {"roi": roi, "s": scales}, opset=opset, mode=mode)
        check_like_runtime(model, {"x": x})


def test_resize_of_operator_set_10() -> None:
    x = floats(1, 2, 3, 4)
    check_like_runtime(single("Resize", {"x": x}, {"s": np.array([1, 1, 2, 3], np.float32)}, opset=10), {"x": x})


@pytest.mark.parametrize("opset", OPSETS)
def test_gemm_broadcasts_its_third_input(opset: int) -> None:
    for shape in ((), (1,), (5,), (3, 1), (1, 5), (3, 5)):
        weights = {"b": floats(4, 5), "c": floats(*shape, seed=2)}
        model = single("Gemm", {"x": floats(3, 4)}, weights, opset=opset, alpha=0.5, beta=2.0)
        check_like_runtime(model, {"x": floats(3, 4)})


@pytest.mark.parametrize("opset", [7, 9, 10, 11, 13, 18])
def test_top_k(opset: int) -> None:
    x = floats(3, 7)
    if opset < 10:
        made = node("TopK", "x", "y i", k=3)
        weights = {}
    else:
        made = node("TopK", "x k", "y i", axis=-1, **({"largest": 0} if opset >= 11 else {}))
        weights = {"k": int64s(3)}
    check_like_runtime(model_of([made], float_inputs(x=(3, 7)), ["y", "i"], weights, opset), {"x": x})


@pytest.mark.parametrize("opset", [1, 3, 5, 6])
def test_before_operator_set_7_broadcasting_was_an_attribute(opset: int) -> None:
    a, b = floats(2, 3, 4), floats(3, seed=1)
    made = node("Add", "a b", broadcast=1, axis=1)
    model = model_of([made], float_inputs(a=a.shape, b=b.shape), opset=opset)
    _, (found,) = imported(model, {"a": a, "b": b})
    np.testing.assert_array_equal(found, a + b[:, None])


def test_before_operator_set_5_a_shape_was_an_attribute() -> None:
    _, (found,) = imported(single("Reshape", {"x": X}, opset=1, shape=[0, -1]), {"x": X})
    np.testing.assert_array_equal(found, X.reshape(2, 12))


def test_reshape_to_zero() -> None:
    for shape, allowzero in ((int64s(0, -1), 0), (int64s(-1, 4), 0), (int64s(4, 6), 1)):
        check_like_runtime(single("Reshape", {"x": X}, {"s": shape}, allowzero=allowzero), {"x": X})


@pytest.mark.sampled(8)
@pytest.mark.parametrize("opset", [15, 17, 22])
@pytest.mark.parametrize("name", BUILDERS)
def test_whole_networks(name: str, opset: int) -> None:
    model = BUILDERS[name]()
    for n in model.graph.node:
        if (n.op_type == "LayerNormalization" and opset < 17) or (n.op_type == "ReduceMean" and opset >= 18):
            pytest.skip("the model uses what this operator set writes otherwise")
    del model.opset_import[:]
    model.opset_import.append(helper.make_opsetid("", opset))
    inputs = random_inputs(model, seed=opset)
    graph, found = imported(model, inputs)
    for a, b in zip(found, by_runtime(model, inputs), strict=True):
        assert np.ptp(b) > 1e-3
        np.testing.assert_allclose(a, b, rtol=1e-4, atol=1e-5)
    assert graph.output_names == [o.name for o in model.graph.output]


CONSTANTS: dict[str, Callable[[], dict[str, Any]]] = {
    "value": lambda: {"value": helper.make_tensor("t", TensorProto.FLOAT, (2,), [1.0, 2.0])},
    "value_float": lambda: {"value_float": 1.5},
    "value_floats": lambda: {"value_floats": [1.5, 2.5]},
}


@pytest.mark.parametrize("kind", CONSTANTS)
def test_constants_of_all_kinds(kind: str) -> None:
    nodes = [node("Constant", "", "c", **CONSTANTS[kind]()), node("Add", "x c")]
    check_like_runtime(model_of(nodes, float_inputs(x=(3, 2))), {"x": floats(3, 2)})


def test_integer_and_sparse_constants() -> None:
    values = helper.make_tensor("v", TensorProto.FLOAT, (2,), [3.0, 4.0])
    sparse = helper.make_sparse_tensor(values, helper.make_tensor("i", TensorProto.INT64, (2,), [1, 3]), [2, 2])
    nodes = [node("Constant", "", "c", sparse_value=sparse), node("Add", "x c")]
    _, (found,) = imported(model_of(nodes, float_inputs(x=(2, 2))), {"x": np.zeros((2, 2), np.float32)})
    np.testing.assert_array_equal(found, [[0, 3], [0, 4]])
    nodes = [node("Constant", "", "i", value_int=1), node("Gather", "x i")]
    graph = from_onnx(model_of(nodes, float_inputs(x=(3, 2))))
    assert graph.outputs[0].static_shape == (2,)
