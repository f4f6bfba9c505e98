"""Sizes that must be equal: found equal where formulas show it, and else checked when the model is called."""

from __future__ import annotations

import numpy as np
import onnxruntime as ort
import pytest
from onnx import ModelProto, NodeProto, TensorProto, helper
from tests.frontends.onnx.nodes import float_inputs, floats, int64s, model_of, node, ops

import weft
from weft.frontends.onnx.importer import from_onnx
from weft.support.errors import InputError, RuntimeFailure

STRIDED = [(10, 5), (3, 2), (3, 2), (3, 2), (3, 2), (2, 2), (2, 2)]
"""The kernels and strides of wav2vec2's feature encoder."""


def speech() -> ModelProto:
    """A chain of strided convolutions over time, then positions added to it, and attention without weights."""
    nodes, weights, x = list[NodeProto](), dict[str, np.ndarray[tuple[int, ...], np.dtype[np.generic]]](), "x"
    for k, (size, stride) in enumerate(STRIDED):
        weights[f"w{k}"] = floats(4, 1 if k == 0 else 4, size) / 4
        nodes.append(node("Conv", f"{x} w{k}", f"c{k}", strides=[stride]))
        x = f"c{k}"
    weights |= {"wp": floats(4, 4, 8), "zero": int64s(0), "end": int64s(-1), "last": int64s(2)}
    weights |= {"heads": int64s(2, 2), "open": int64s(-1)}
    weights |= {"minus": int64s(-1, -1, -1), "ones": int64s(1, 1, 1), "first": int64s(0)}
    nodes += [
        node("Conv", f"{x} wp", "p", pads=[4, 4]),
        node("Slice", "p zero end last", "positions"),
        node("Add", f"{x} positions", "h"),
        node("Transpose", "h", "t", perm=[0, 2, 1]),
        node("Shape", "t", "shape"),
        node("Slice", "shape zero last first", "rows"),
        node("Concat", "rows heads", "split", axis=0),
        node("Reshape", "t split", "q"),
        node("Transpose", "q", "qt", perm=[0, 2, 1, 3]),
        node("Transpose", "q", "kt", perm=[0, 2, 3, 1]),
        node("MatMul", "qt kt", "scores"),
        node("Softmax", "scores", "share", axis=-1),
        node("Equal", "shape minus", "left"),
        node("Where", "left ones shape", "wanted"),
        node("Expand", "t wanted", "whole"),
        node("MatMul", "share qt", "mixed"),
        node("Transpose", "mixed", "back", perm=[0, 2, 1, 3]),
        node("Concat", "rows open", "merged", axis=0),
        node("Reshape", "back merged", "m"),
        node("Add", "m whole", "y"),
    ]
    return model_of(nodes, float_inputs(x=("batch", 1, "time")), weights=weights)


def test_a_chain_of_strided_convolutions_over_symbolic_time() -> None:
    model = speech()
    graph = from_onnx(model)
    assert not {"tie_shape", "reshape_checked"} & set(ops(graph))
    assert not graph.requirements
    assert not graph.late_sizes
    compiled, session = weft.compile(model), ort.InferenceSession(model.SerializeToString())
    for batch, time in [(1, 400), (2, 1999)]:
        x = np.random.default_rng(time).standard_normal((batch, 1, time)).astype(np.float32)
        (wanted,) = session.run(None, {"x": x})
        np.testing.assert_allclose(np.asarray(compiled(x)), wanted, rtol=1e-4, atol=1e-5)
    with pytest.raises(InputError, match=r"Conv /c4: a dimension of its result is -1, which is no size"):
        compiled(np.zeros((1, 1, 79), np.float32))


def test_dimensions_of_two_names_are_checked_to_be_equal() -> None:
    model = model_of([node("Add", "a b")], float_inputs(a=("n", 4), b=("m", 4)))
    compiled = weft.compile(model)
    a, b = floats(3, 4), floats(3, 4)
    np.testing.assert_array_equal(np.asarray(compiled(a, b)), a + b)
    with pytest.raises(InputError) as told:
        compiled(a, floats(2, 4))
    assert str(told.value).startswith("Add /y: the sizes n and m must be equal, but are 3 and 2\n")


def test_the_inner_sizes_of_a_product_are_checked_to_be_equal() -> None:
    model = model_of([node("MatMul", "a b")], float_inputs(a=(2, "n"), b=("m", 8)))
    compiled = weft.compile(model)
    a, b = floats(2, 5), floats(5, 8)
    np.testing.assert_allclose(np.asarray(compiled(a, b)), a @ b, rtol=1e-5)
    with pytest.raises(InputError, match="MatMul /y: the sizes n and m must be equal, but are 5 and 4"):
        compiled(a, floats(4, 8))


@pytest.mark.parametrize("order", ["p2 p4 p8", "p8 p4 p2", "p4 p8 p2", "p4 p2 p8"])
def test_pyramids_of_features_are_joined_at_one_size(order: str) -> None:
    """Levels that are pooled and resized to one size are as large as it where the input is a multiple of all strides."""
    nodes = [node("MaxPool", "x", f"m{k}", kernel_shape=[1], strides=[k], ceil_mode=1) for k in (2, 4, 8)]
    nodes += [node("Resize", f"m{k} - s{k}", f"p{k}", mode="nearest") for k in (2, 4, 8)]
    weights = {f"s{k}": np.array([1, 1, k / 2], np.float32) for k in (2, 4, 8)}
    model = model_of([*nodes, node("Concat", order, axis=1)], float_inputs(x=(1, 2, "n")), weights=weights)
    compiled, session = weft.compile(model), ort.InferenceSession(model.SerializeToString())
    x = floats(1, 2, 24)
    np.testing.assert_array_equal(np.asarray(compiled(x)), session.run(None, {"x": x})[0])
    with pytest.raises(InputError, match=r"Concat /y: the sizes .* must be equal, but are"):
        compiled(floats(1, 2, 18))


def test_sizes_that_can_not_be_equal_are_refused_at_once() -> None:
    model = model_of([node("Concat", "a a", "b", axis=0), node("Add", "a b")], float_inputs(a=("n", 4)))
    with pytest.raises(weft.ModelError, match="do not broadcast together"):
        from_onnx(model)


def test_a_reshape_to_sizes_that_only_its_elements_tell() -> None:
    nodes = [node("Shape", "b", "s"), node("Reshape", "a s")]
    compiled = weft.compile(model_of(nodes, float_inputs(a=("n", "m"), b=("k", "l"))))
    a = floats(2, 6)
    np.testing.assert_array_equal(np.asarray(compiled(a, floats(4, 3))), a.reshape(4, 3))
    with pytest.raises(InputError, match=r"the sizes .* must be equal, but are 12 and 15"):
        compiled(a, floats(5, 3))


def test_late_sizes_are_checked_when_they_are_known() -> None:
    nodes = [
        node("NonZero", "x", "at"),
        node("NonZero", "z", "other"),
        node("Add", "at other"),
    ]
    model = model_of(nodes, float_inputs(x=("n",), z=("m",)))
    assert "tie_shape" in ops(from_onnx(model))
    compiled, session = weft.compile(model), ort.InferenceSession(model.SerializeToString())
    x = np.array([0, 1, 2, 0, 3], np.float32)
    for z in ([1, 0, 1, 1], [0, 5]):  # as many, and one that is repeated
        given = {"x": x, "z": np.array(z, np.float32)}
        (wanted,) = session.run(None, given)
        np.testing.assert_array_equal(np.asarray(compiled(**given)), wanted)
    with pytest.raises(RuntimeFailure, match=r"the sizes .* must be equal, but are 3 and 2"):
        compiled(x=x, z=np.ones(2, np.float32))


@pytest.mark.parametrize("declared", [True, False])
def test_sizes_that_may_be_one_are_dropped_where_the_model_says_so(declared: bool) -> None:
    """PyTorch writes `squeeze()` without axes; whether a batch of one is dropped is seen by the dimensions of the output."""
    model = model_of([node("Relu", "x", "r"), node("Squeeze", "r", "s"), node("Neg", "s")], float_inputs(x=("n", 4, 1)))
    if declared:
        model.graph.output[0].CopyFrom(helper.make_tensor_value_info("y", TensorProto.FLOAT, [4]))
    compiled, session = weft.compile(model), ort.InferenceSession(model.SerializeToString())
    x = floats(1 if declared else 3, 4, 1)
    np.testing.assert_array_equal(np.asarray(compiled(x)), session.run(None, {"x": x})[0])
    told = "which it drops, is 2, and not 1" if declared else "is 1, and would be dropped"
    with pytest.raises(InputError, match=f"Squeeze /s: dimension 0.* {told}"):
        compiled(floats(2 if declared else 1, 4, 1))


def test_a_declaration_that_no_choice_fits_is_no_error() -> None:
    model = model_of([node("Squeeze", "x")], float_inputs(x=("n", 4, 1)))
    model.graph.output[0].CopyFrom(helper.make_tensor_value_info("y", TensorProto.FLOAT, [1, 4, 1, 1, 1]))
    assert from_onnx(model).outputs[0].rank == 2
