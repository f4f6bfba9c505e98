"""Sequences and optional values, which are taken apart while a model is imported, against ONNX Runtime."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pytest
from onnx import GraphProto, ModelProto, TensorProto, TypeProto, ValueInfoProto, helper
from tests.frontends.onnx.nodes import (
    Array,
    by_runtime,
    check_like_runtime,
    float_inputs,
    floats,
    int64s,
    model_of,
    node,
)

from weft import backend
from weft.driver.checking.reference import run_graph
from weft.frontends.onnx.importer import from_onnx
from weft.support.errors import ModelError, UnknownValues

FLOATS = helper.make_tensor_type_proto(TensorProto.FLOAT, None)
SEQUENCE = helper.make_sequence_type_proto(FLOATS)


def declared(model: ModelProto, inputs: Sequence[ValueInfoProto]) -> ModelProto:
    """Returns the model with more inputs before its own."""
    own = [*inputs, *model.graph.input]
    del model.graph.input[:]
    model.graph.input.extend(own)
    return model


def sequence_input(name: str) -> ValueInfoProto:
    return helper.make_value_info(name, SEQUENCE)


@pytest.mark.parametrize("position", [0, 1, 2, -1, -2])
def test_insertion_at_a_position(position: int) -> None:
    feeds = {"a": floats(2, 3), "b": floats(2, 3, seed=1), "c": floats(2, 3, seed=2)}
    nodes = [
        node("SequenceConstruct", "a b", "s"),
        node("SequenceInsert", "s c p", "longer"),
        node("ConcatFromSequence", "longer", "y", axis=1),
    ]
    model = model_of(nodes, float_inputs(a=(2, 3), b=(2, 3), c=(2, 3)), weights={"p": np.array(position)})
    check_like_runtime(model, feeds)


@pytest.mark.parametrize("position", [0, -1, -3])
def test_erasure_and_reading_at_a_position(position: int) -> None:
    feeds = {"x": floats(3, 4)}
    nodes = [
        node("SplitToSequence", "x", "s", axis=0),
        node("SequenceErase", "s p", "shorter"),
        node("SequenceLength", "shorter", "count"),
        node("SequenceAt", "shorter one", "row"),
        node("Add", "row row", "y"),
    ]
    weights = {"p": np.array(position), "one": np.array(1)}
    model = model_of(nodes, float_inputs(x=(3, 4)), ("y", "count"), weights)
    graph = check_like_runtime(model, feeds)
    assert [n.op for n in graph.nodes if n.op != "split"] == ["add"]


@pytest.mark.parametrize(("split", "keepdims"), [(None, 1), (None, 0), (np.array(2), 1), (int64s(1, 3, 1), 1)])
def test_pieces_are_stacked_again(split: Array | None, keepdims: int) -> None:
    names = "x" if split is None else "x n"
    x = {"x": floats(5, 4)}
    nodes = [node("SplitToSequence", names, "s", axis=0, keepdims=keepdims)]
    nodes += [node("ConcatFromSequence", "s", "y", axis=-1 if not keepdims else 0, new_axis=1 - keepdims)]
    check_like_runtime(model_of(nodes, float_inputs(x=(5, 4)), weights={} if split is None else {"n": split}), x)


def counting_body() -> GraphProto:
    """The body of a loop that puts a growing tensor into a sequence in each iteration."""
    nodes = [
        node("Add", "number one", "next"),
        node("Reshape", "next whole", "end"),
        node("Slice", "data zero end", "part"),
        node("SequenceInsert", "before part", "after"),
        node("Identity", "going", "goes_on"),
    ]
    inputs = [
        helper.make_tensor_value_info("number", TensorProto.INT64, []),
        helper.make_tensor_value_info("going", TensorProto.BOOL, []),
        sequence_input("before"),
    ]
    outputs = [
        helper.make_tensor_value_info("goes_on", TensorProto.BOOL, []),
        helper.make_value_info("after", SEQUENCE),
    ]
    return helper.make_graph(nodes, "body", inputs, outputs)


def loop_model(count: Array | None) -> ModelProto:
    nodes = [
        node("SequenceEmpty", "", "empty"),
        node("Loop", "count going empty", "grown", body=counting_body()),
        node("ConcatFromSequence", "grown", "y", axis=0),
    ]
    weights = {"zero": int64s(0), "one": np.array(1), "whole": int64s(1), "going_at_first": np.array(True)}
    nodes[1].input[1] = "going_at_first"
    inputs = float_inputs(data=(30,))
    if count is None:
        inputs["count"] = (TensorProto.INT64, [])
    else:
        weights["count"] = count
    return model_of(nodes, inputs, weights=weights)


def test_a_sequence_that_grows_in_a_loop() -> None:
    check_like_runtime(loop_model(np.array(20)), {"data": floats(30)})


@pytest.mark.parametrize("count", [1, 5])
def test_a_sequence_that_grows_as_often_as_an_input_says(count: int) -> None:
    check_like_runtime(loop_model(None), {"data": floats(30), "count": np.array(count)})


def branches(*, equal: bool) -> ModelProto:
    """A model whose condition chooses between two sequences."""
    sizes = "x y" if equal else "x"
    made = [helper.make_value_info("s", SEQUENCE)]
    then = helper.make_graph([node("SequenceConstruct", "x y", "s")], "then", [], made)
    other = helper.make_graph([node("SequenceConstruct", sizes[::-1], "s")], "other", [], made)
    nodes = [
        node("If", "which", "chosen", then_branch=then, else_branch=other),
        node("ConcatFromSequence", "chosen", "z", axis=0),
    ]
    return model_of(nodes, {"which": (TensorProto.BOOL, []), **float_inputs(x=(2,), y=(2,))}, ("z",))


@pytest.mark.parametrize("which", [True, False])
def test_branches_that_give_sequences_of_one_length(which: bool) -> None:
    feeds = {"which": np.array(which), "x": floats(2), "y": floats(2, seed=1)}
    check_like_runtime(branches(equal=True), feeds)


@pytest.mark.parametrize("which", [True, False])
def test_branches_that_give_sequences_of_several_lengths(which: bool) -> None:
    feeds = {"which": np.array(which), "x": floats(2), "y": floats(2, seed=1)}
    check_like_runtime(branches(equal=False), feeds)


def mapped(kind: TypeProto = SEQUENCE) -> ModelProto:
    body = helper.make_graph(
        [node("MatMul", "e w", "f")],
        "body",
        [helper.make_value_info(n, FLOATS) for n in "ew"],
        [helper.make_value_info("f", FLOATS)],
    )
    model = model_of([node("SequenceMap", "s w", "y", body=body)], float_inputs(w=(3, 2)))
    return declared(model, [helper.make_value_info("s", kind)])


def test_a_function_of_each_tensor() -> None:
    w, given = floats(3, 2), [floats(4, 3), floats(1, 3, seed=1), floats(3, seed=2)]
    graph = from_onnx(mapped(), {"s": [x.shape for x in given]})
    assert [v.name for v in graph.inputs] == ["s[0]", "s[1]", "s[2]", "w"]
    assert graph.output_names == ["y[0]", "y[1]", "y[2]"]
    found = run_graph(graph, {"w": w, **{f"s[{k}]": x for k, x in enumerate(given)}})
    for y, x in zip(found, given, strict=True):
        np.testing.assert_allclose(y, x @ w, rtol=1e-5)


def test_the_backend_takes_and_gives_lists() -> None:
    w, given = floats(3, 2), [floats(4, 3), floats(1, 3, seed=1)]
    prepared = backend.prepare(
        mapped(helper.make_sequence_type_proto(helper.make_tensor_type_proto(TensorProto.FLOAT, ["n", 3])))
    )
    for count in (2, 1):
        (found,) = prepared.run([given[:count], w])
        assert len(found) == count
        for y, x in zip(found, given, strict=False):
            np.testing.assert_allclose(y, x @ w, rtol=1e-5)


def test_the_backend_is_told_what_a_model_does_not_declare() -> None:
    with pytest.raises(UnknownValues, match=r"SequenceMap /y: the number of dimensions .*\n  hint: declare the rank"):
        backend.prepare(mapped())
    w, given = floats(3, 2), [floats(4, 3), floats(1, 3, seed=1)]
    (found,) = backend.prepare(mapped(), shapes={"s": [x.shape for x in given]}).run([given, w])
    for y, x in zip(found, given, strict=True):
        np.testing.assert_allclose(y, x @ w, rtol=1e-5)


def optional_model(dims: Sequence[int] | None = (2,)) -> ModelProto:
    """Adds an optional tensor, if it is there."""
    there = helper.make_graph(
        [node("OptionalGetElement", "o", "e"), node("Add", "x e", "r")],
        "there",
        [],
        [helper.make_value_info("r", FLOATS)],
    )
    absent = helper.make_graph([node("Neg", "x", "r")], "absent", [], [helper.make_value_info("r", FLOATS)])
    nodes = [
        node("OptionalHasElement", "o", "has"),
        node("If", "has", "y", then_branch=there, else_branch=absent),
    ]
    type_ = helper.make_optional_type_proto(helper.make_tensor_type_proto(TensorProto.FLOAT, dims))
    return declared(model_of(nodes, float_inputs(x=(2,)), opset=18), [helper.make_value_info("o", type_)])


def test_optional_inputs() -> None:
    x, given = floats(2), floats(2, seed=1)
    prepared = backend.prepare(optional_model())
    np.testing.assert_array_equal(prepared.run([given, x])[0], x + given)
    np.testing.assert_array_equal(prepared.run([None, x])[0], -x)
    graph = from_onnx(optional_model(None), {"o": None})
    assert [v.name for v in graph.inputs] == ["x"]
    with pytest.raises(UnknownValues) as caught:
        from_onnx(optional_model(None))
    assert str(caught.value) == (
        "the input 'o' is optional, and its number of dimensions is not known before the model runs\n"
        '  hint: give its shape: shapes={"o": (2, 3)}, or None where it is absent'
    )


def test_values_made_optional() -> None:
    nodes = [node("Optional", "x", "o"), node("OptionalHasElement", "o", "has"), node("OptionalGetElement", "o", "y")]
    nodes += [node("Optional", "", "nothing", type=FLOATS), node("OptionalHasElement", "nothing", "hasnt")]
    model = model_of(nodes, float_inputs(x=(2,)), ("y", "has", "hasnt"), opset=18)
    found = run_graph(from_onnx(model), {"x": floats(2)})
    for a, b in zip(found, by_runtime(model, {"x": floats(2)}), strict=True):
        np.testing.assert_array_equal(a, b)


def test_a_sequence_where_a_tensor_belongs() -> None:
    nodes = [node("SequenceConstruct", "x x", "s"), node("Relu", "s", "y")]
    with pytest.raises(
        ModelError, match=r"Relu /y: its input 0 is a sequence of 2 tensors of f32, and it takes tensors"
    ):
        from_onnx(model_of(nodes, float_inputs(x=(2,))))
    nodes = [node("SequenceConstruct", "x x", "s"), node("SequenceAt", "s p", "y")]
    with pytest.raises(ModelError, match="SequenceAt /y: its position is 2, and there are 2"):
        from_onnx(model_of(nodes, float_inputs(x=(2,)), weights={"p": np.array(2)}))
