"""Sequences and optional values of which only a run tells the structure: one model for all calls, against lists of NumPy."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest
from onnx import GraphProto, ModelProto, NodeProto, TensorProto, helper
from tests.frontends.onnx.nodes import Array, float_inputs, floats, int64s, model_of, node
from tests.frontends.onnx.operators.held_feeds import run_held

from weft import backend
from weft.frontends.onnx.importer import from_onnx
from weft.support.errors import InputError, RuntimeFailure, UnknownValues

NUMBER: tuple[int, list[int | str | None]] = (TensorProto.INT64, [])
ROWS = ("n", "m")
"""The sizes of a sequence's tensors: any, of two dimensions."""


def sequence_type(dims: Sequence[str | int] | None = ROWS) -> Any:
    return helper.make_sequence_type_proto(helper.make_tensor_type_proto(TensorProto.FLOAT, dims))


def sequence_model(
    nodes: Sequence[NodeProto], outputs: Sequence[str] = ("y",), dims: Sequence[str | int] | None = ROWS, **inputs: Any
) -> ModelProto:
    """Makes a model whose first input is a sequence *s* of tensors of *dims*."""
    model = model_of(nodes, inputs, outputs)
    own = [helper.make_value_info("s", sequence_type(dims)), *model.graph.input]
    del model.graph.input[:]
    model.graph.input.extend(own)
    return model


def tensors(*shapes: tuple[int, ...]) -> list[Array]:
    return [floats(*shape, seed=k) for k, shape in enumerate(shapes)]


def assert_like(found: Any, wanted: Any) -> None:
    """Compares tensors, and sequences of them."""
    if isinstance(wanted, list):
        assert isinstance(found, list)
        assert [x.shape for x in found] == [x.shape for x in wanted]
        for x, y in zip(found, wanted, strict=True):
            np.testing.assert_array_equal(x, y)
    else:
        assert np.shape(found) == np.shape(wanted)
        np.testing.assert_array_equal(found, wanted)


MANY = tensors((2, 3), (1, 4), (3, 2))
ONE = tensors((2, 2))


@pytest.mark.parametrize("given", [MANY, ONE, []])
def test_insertion_at_a_position_that_an_input_says(given: list[Array]) -> None:
    x = floats(1, 2, seed=7)
    graph = from_onnx(sequence_model([node("SequenceInsert", "s x p")], x=(TensorProto.FLOAT, [1, 2]), p=NUMBER))
    for p in range(-len(given), len(given) + 1):
        wanted = list(given)
        wanted.insert(p, x)
        assert_like(run_held(graph, {"s": given, "x": x, "p": np.array(p)}, ["y"])[0], wanted)


@pytest.mark.parametrize("given", [MANY, ONE])
def test_erasure_and_reading_at_a_position_that_an_input_says(given: list[Array]) -> None:
    nodes = [node("SequenceErase", "s p", "left"), node("SequenceAt", "s p", "e"), node("Neg", "e")]
    nodes.append(node("SequenceLength", "left", "count"))
    graph = from_onnx(sequence_model(nodes, ("left", "y", "count"), p=NUMBER))
    for p in range(-len(given), len(given)):
        left, y, count = run_held(graph, {"s": given, "p": np.array(p)}, ["left", "y", "count"])
        assert_like(left, [x for k, x in enumerate(given) if k != p % len(given)])
        assert_like(y, -given[p])
        assert count == len(given) - 1


@pytest.mark.parametrize("axis", [0, 1, -1])
def test_tensors_one_after_another(axis: int) -> None:
    graph = from_onnx(sequence_model([node("ConcatFromSequence", "s", axis=axis)]))
    for shapes in (((2, 3), (2, 3)), ((2, 3),), ((1, 3), (4, 3), (2, 3)), ((3, 1), (3, 0), (3, 5))):
        given = tensors(*shapes)
        if len({np.delete(s, axis).tobytes() for s in shapes}) == 1:
            assert_like(run_held(graph, {"s": given}, ["y"])[0], np.concatenate(given, axis))


@pytest.mark.parametrize("axis", [0, 1, 2, -1])
def test_tensors_stacked(axis: int) -> None:
    graph = from_onnx(sequence_model([node("ConcatFromSequence", "s", axis=axis, new_axis=1)]))
    for count in (1, 3):
        given = tensors(*[(2, 3)] * count)
        assert_like(run_held(graph, {"s": given}, ["y"])[0], np.stack(given, axis))


@pytest.mark.parametrize("axis", [0, 1])
def test_pieces_whose_number_only_a_run_tells(axis: int) -> None:
    x = floats(4, 6)
    pieces, sizes = node("SplitToSequence", "x n", "y", axis=axis), (TensorProto.INT64, ["k"])
    inputs = {"x": (TensorProto.FLOAT, ["a", "b"])}
    of_one = from_onnx(model_of([pieces], {**inputs, "n": NUMBER}))
    of_many = from_onnx(model_of([pieces], {**inputs, "n": sizes}))
    count = x.shape[axis]
    for n in (1, 3, count, 9):
        wanted = np.split(x, range(n, count, n), axis)
        assert_like(run_held(of_one, {"x": x, "n": np.array(n)}, ["y"])[0], wanted)
    for each in (int64s(1, 0, count - 1), int64s(count)):
        wanted = np.split(x, np.cumsum(each)[:-1], axis)
        assert_like(run_held(of_many, {"x": x, "n": each}, ["y"])[0], wanted)


def test_slices_whose_number_is_symbolic() -> None:
    graph = from_onnx(model_of([node("SplitToSequence", "x", "y", axis=1, keepdims=0)], float_inputs(x=("a", "b", 2))))
    x = floats(2, 3, 2)
    assert_like(run_held(graph, {"x": x}, ["y"])[0], [x[:, k] for k in range(3)])


def test_tensors_of_several_ranks() -> None:
    x = floats(2, seed=9)
    graph = from_onnx(sequence_model([node("SequenceInsert", "s x", "y")], dims=None, x=(TensorProto.FLOAT, [2])))
    given = tensors((), (3,), (2, 1, 2))
    assert_like(run_held(graph, {"s": given, "x": x}, ["y"])[0], [*given, x])
    with pytest.raises(UnknownValues, match=r"SequenceAt /y: the number of dimensions of its result"):
        from_onnx(sequence_model([node("SequenceAt", "s p")], dims=None, p=NUMBER))


def body(nodes: Sequence[NodeProto], state: Any) -> GraphProto:
    """Returns the body of a loop of one state, from *before* to *after*."""
    inputs = [helper.make_tensor_value_info("k", *NUMBER), helper.make_tensor_value_info("go", TensorProto.BOOL, [])]
    outputs = [helper.make_tensor_value_info("go", TensorProto.BOOL, []), helper.make_value_info("after", state)]
    return helper.make_graph(nodes, "body", [*inputs, helper.make_value_info("before", state)], outputs)


def test_a_loop_that_takes_from_one_sequence_and_gives_another() -> None:
    """The tensors come out in turned order, each times its position."""
    nodes = [
        node("SequenceAt", "s k", "x"),
        node("CastLike", "k x", "f"),
        node("Mul", "x f", "scaled"),
        node("SequenceInsert", "before scaled zero", "after"),
    ]
    outer = [
        node("Constant", "", "zero", value_int=0),
        node("SequenceLength", "s", "count"),
        node("SequenceEmpty", "", "empty"),
        node("Loop", "count - empty", "y", body=body(nodes, sequence_type())),
        node("ConcatFromSequence", "y", "z", axis=1),
    ]
    graph = from_onnx(sequence_model(outer, ("y", "z")))
    for given in (tensors((2, 3), (2, 1), (2, 4)), tensors((1, 2))):
        y, z = run_held(graph, {"s": given}, ["y", "z"])
        wanted = [x * np.float32(k) for k, x in enumerate(given)][::-1]
        assert_like(y, wanted)
        assert_like(z, np.concatenate(wanted, 1))


def test_a_queue_that_loses_its_first_as_it_grows() -> None:
    nodes = [
        node("SequenceAt", "before zero", "first"),
        node("Concat", "first first", "longer", axis=0),
        node("SequenceErase", "before zero", "rest"),
        node("SequenceInsert", "rest longer", "after"),
    ]
    outer = [node("Constant", "", "zero", value_int=0), node("Loop", "n - s", "y", body=body(nodes, sequence_type()))]
    graph = from_onnx(sequence_model(outer, n=NUMBER))
    for n in (0, 1, 5):
        wanted = list(MANY)
        for _ in range(n):
            first = wanted.pop(0)
            wanted.append(np.concatenate([first, first]))
        assert_like(run_held(graph, {"s": MANY, "n": np.array(n)}, ["y"])[0], wanted)


def optional_model() -> ModelProto:
    """Returns an optional value that is *x* with another, if there is one, and absent for no elements but zeros."""
    tensor = helper.make_tensor_type_proto(TensorProto.FLOAT, ["n"])
    kept = helper.make_value_info("o", helper.make_optional_type_proto(tensor))
    then = helper.make_graph([node("Optional", "x", "there")], "then", [], [helper.make_value_info("there", kept.type)])
    other = helper.make_graph(
        [node("Optional", "", "gone", type=tensor)], "other", [], [helper.make_value_info("gone", kept.type)]
    )
    nodes = [
        node("ReduceMax", "x", "most", keepdims=0),
        node("Cast", "most", "some", to=TensorProto.BOOL),
        node("If", "some", "y", then_branch=then, else_branch=other),
        node("OptionalHasElement", "y", "has"),
        node("OptionalHasElement", "o", "had"),
    ]
    model = model_of(nodes, float_inputs(x=("k",)), ("y", "has", "had"), opset=18)
    model.graph.input.append(kept)
    return model


def test_values_that_may_be_absent() -> None:
    graph = from_onnx(optional_model())
    zeros, ones = np.zeros(3, np.float32), np.ones(2, np.float32)
    for x, o in ((zeros, ones), (ones, None), (ones, ones)):
        y, has, had = run_held(graph, {"x": x, "o": o}, ["y", "has", "had"])
        assert (has, had) == (x is ones, o is not None)
        assert y is None if x is zeros else np.array_equal(y, x)


@pytest.mark.parametrize(("op", "position"), [("At", 3), ("At", -4), ("Erase", 3), ("Erase", -4)])
def test_positions_outside_are_refused(op: str, position: int) -> None:
    graph = from_onnx(sequence_model([node(f"Sequence{op}", "s p")], p=NUMBER))
    with pytest.raises(InputError, match=f"Sequence{op} /y: its position is none in a sequence of 3"):
        run_held(graph, {"s": MANY, "p": np.array(position)}, ["y"])


@pytest.mark.parametrize(
    ("nodes", "given", "told"),
    [
        ([node("ConcatFromSequence", "s", axis=0)], MANY, "the tensors of its sequence differ in dimension 1"),
        ([node("ConcatFromSequence", "s", axis=0)], [], "its sequence is empty"),
        (
            [node("ConcatFromSequence", "s", axis=0, new_axis=1)],
            MANY,
            "the tensors of its sequence differ in dimension 0",
        ),
    ],
)
def test_tensors_that_do_not_fit_are_refused(nodes: list[NodeProto], given: list[Array], told: str) -> None:
    with pytest.raises(InputError, match=told):
        run_held(from_onnx(sequence_model(nodes)), {"s": given}, ["y"])


@pytest.mark.parametrize(
    ("shapes", "told"),
    [
        ([[2, 2, 3]], "has 7 elements, and 6 by its shapes"),
        ([[2, -1, -7]], "has shapes of negative sizes"),
        ([[2, 1 << 62, 4], [2, 7, 1]], "has 7 elements, and "),
        ([[1, 7, 1]], "has tensors of another rank than 2"),
    ],
)
def test_shapes_of_a_caller_that_are_none_of_its_elements(shapes: list[list[int]], told: str) -> None:
    """Those that are wrong would read beyond the elements."""
    model = backend.prepare(sequence_model([node("SequenceAt", "s p")], p=NUMBER))._model
    feed = {"s.elements": floats(7), "s.shapes": np.array(shapes), "p": np.array(0)}
    with pytest.raises(RuntimeFailure, match=f"the input s {told}"):
        model.run([feed[v.name] for v in model.inputs])


def test_an_absent_value_that_is_asked_for() -> None:
    model = optional_model()
    model.graph.node.append(node("OptionalGetElement", "o", "z"))
    model.graph.output.append(helper.make_empty_tensor_value_info("z"))
    graph = from_onnx(model)
    x = np.ones(2, np.float32)
    with pytest.raises(InputError, match="OptionalGetElement /z: its input is absent"):
        run_held(graph, {"x": x, "o": None}, ["z"])
    assert_like(run_held(graph, {"x": x, "o": x}, ["z"])[0], x)


LISTS = [[], tensors((2, 3)), tensors((0, 3)), tensors((2, 3), (0, 2)), tensors((0, 1), (0, 1)), MANY]


@pytest.mark.sampled(2)
@pytest.mark.parametrize("op", ["Insert", "Erase", "At"])
def test_code_for_empty_sequences_and_tensors_of_no_elements(op: str) -> None:
    """Kernels are not called for sizes of zero: what is left of an operator then computes the rest of its result."""
    nodes = [node("Compress", "x keep", "rows", axis=0), node("SequenceInsert", "s rows p")]
    if op != "Insert":
        nodes = [node(f"Sequence{op}", "s p")]
    inputs: dict[str, Any] = {"x": (TensorProto.FLOAT, [2, 2]), "keep": (TensorProto.BOOL, [2])}
    prepared = backend.prepare(sequence_model(nodes, p=NUMBER, **(inputs if op == "Insert" else {})))
    x = floats(2, 2, seed=7)
    for given, kept in itertools.product(LISTS, [0, 1, 2] if op == "Insert" else [0]):
        for p in range(-len(given), len(given) + (op == "Insert")):
            feed: dict[str, Any] = {"s": given, "p": np.array(p)}
            wanted: Any = list(given)
            if op == "Insert":
                feed |= {"x": x, "keep": np.arange(2) < kept}
                wanted.insert(p, x[:kept])
            elif op == "Erase":
                wanted.pop(p)
            else:
                wanted = given[p]
            assert_like(prepared.run(feed)[0], wanted)
