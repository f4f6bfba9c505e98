"""Unsupported and damaged models: the messages name the node, and say what to do."""

from __future__ import annotations

import random
import shutil
from pathlib import Path

import numpy as np
import pytest
from tests.frontends.tensorflow.test_operators import ARRAYS, CASES, FOLDER
from tests.frontends.tensorflow.written import field, function, graph, node, shape, tensor
from tests.support.damaged_files import damaged

import weft
from weft.frontends.dispatch import files_of, frontend_of, to_graph
from weft.frontends.tensorflow.file.checkpoint import Checkpoint
from weft.frontends.tensorflow_operators.registry import TABLE

X = node("x", "Placeholder", dtype="type:float", shape=(-1, 4))
MARKS = [b"\x00", b"\xff\xff\xff\xff\x0f", b"\x0a\x00", b"\x12\x04Relu", b"\x08\x01"]


def said(model: object) -> str:
    with pytest.raises(weft.ModelError) as told:
        to_graph(model)
    return str(told.value)


def test_all_unsupported_operators_are_told_at_once() -> None:
    inner = function("f", ["a"], [node("swirl", "Swirl", "a")], {"r": "swirl:y:0"})
    model = graph(
        X,
        node("one", "Twist", "x"),
        node("two", "Twist", "one"),
        node("call", "PartitionedCall", "two", f="function:f"),
        node("unread", "NoOp"),
        functions=[inner],
    )
    assert said(model) == (
        "the model uses 2 operators that Weft does not have:\n"
        "  Swirl, 1 node: f/swirl\n"
        "  Twist, 2 nodes: one, two\n"
        "  hint: build the model without these operators"
    )
    flow = graph(X, node("s", "Switch", "x", "x"))
    assert said(flow).endswith(
        "hint: freeze the model with lower_control_flow=False, which leaves its control flow in functions"
    )


@pytest.mark.parametrize(
    ("nodes", "message"),
    [
        (
            [node("y", "Squeeze", "x", squeeze_dims=[1])],
            "Squeeze y: dimension 1 of x: f32[batch, 4] can't be dropped: its size is not known to be one\n"
            "  hint: give it a number",
        ),
        (
            [node("y", "BiasAdd", "x", "x")],
            "BiasAdd y: its input 1 should have 1 dimensions: x: f32[batch, 4]\n  hint: save the model again",
        ),
        (
            [node("y", "LeakyRelu", "x", alpha="a")],
            "LeakyRelu y: its attribute 'alpha' is 'a'\n  hint: save the model again",
        ),
        (
            [node("z", "Const", value=tensor([0], [])), node("y", "Split", "z", "x", num_split=1 << 40)],
            "Split y: it splits x: f32[batch, 4] into 1099511627776 pieces; 1 to 65536 are supported\n"
            "  hint: save the model again",
        ),
        ([node("y", "Relu", "z")], "Relu y: there is no node 'z'\n  hint: save the model again"),
        ([node("y", "Relu", "x:3")], "Relu y: the node 'x' has no result 3\n  hint: build the model without it"),
        (
            [node("a", "Relu", "b"), node("b", "Relu", "a"), node("y", "Relu", "b")],
            "a: its nodes form a cycle\n  hint: save the model again",
        ),
        (
            [node("v", "VarHandleOp"), node("r", "ReadVariableOp", "v"), node("y", "Add", "x", "r")],
            "VarHandleOp v: the value of this variable is not in the checkpoint, or of a type that is not supported\n"
            "  hint: save the model with all of its variables",
        ),
        (
            [node("y", "PartitionedCall", "x", f="function:g")],
            "PartitionedCall y: there is no function 'g'\n  hint: save the model again",
        ),
        (
            [node("y", "Reshape", "x", "c"), node("c", "Const", value=b"\x08")],
            "a node of the model is damaged\n  hint: save the model again",
        ),
    ],
)
def test_refused_nodes(nodes: list[bytes], message: str) -> None:
    assert said(graph(X, *nodes)).endswith(message)


def test_refused_inputs_and_functions() -> None:
    text = node("t", "Placeholder", dtype="type:complex64", shape=(1,))
    assert said(graph(text, node("y", "Identity", "t"))) == (
        "the input 't' is of complex64, which is not supported\n  hint: build the model with numbers or bools"
    )
    assert said(graph(X)) == "the model has no outputs\n  hint: save the model again"
    writes = function("f", ["a"], [node("w", "AssignAddVariableOp", "a", "a")], {"r": "a"})
    assert said(graph(X, node("y", "PartitionedCall", "x", f="function:f"), functions=[writes])) == (
        "AssignAddVariableOp f/w: variables that change from call to call are not supported\n"
        "  hint: save the model for inference: training=False, and no state"
    )


def test_a_saved_model_is_a_folder_and_its_variables(tmp_path: Path) -> None:
    folder = tmp_path / "small"
    shutil.copytree(FOLDER / "small", folder)
    files = files_of(folder)
    assert [p.name for p in files] == ["saved_model.pb", "variables.data-00000-of-00001", "variables.index"]
    assert files_of(folder / "saved_model.pb") == files
    x = np.linspace(-1, 1, 8, dtype=np.float32).reshape(2, 4)
    wanted = np.load(FOLDER / "small" / "wanted.npy")
    np.testing.assert_allclose(weft.compile(folder)(x), wanted, rtol=1e-5, atol=1e-6)
    assert said((folder / "saved_model.pb").read_bytes()) == (
        "a saved model given as bytes has no variables, which are files of its own\n  hint: give the folder's path"
    )
    files[1].unlink()
    assert said(folder) == f"there is no {files[1]}, which the saved model needs\n  hint: copy the whole folder"
    files[1].write_bytes(b"\0")
    assert "is stored in slices, cut short or damaged\n  hint: copy or save the model again" in said(folder)
    files[2].write_bytes(b"\0" * 60)
    assert said(folder) == f"{files[2]} is damaged, or compressed\n  hint: copy or save the model again"
    files[0].unlink()
    with pytest.raises(weft.ModelError, match="is a folder, not a model"):
        frontend_of(folder)


def damaged_graph(rng: random.Random) -> bytes:
    return damaged(rng, ARRAYS[f"{rng.choice(CASES)}.graph"].tobytes(), MARKS)


def refusal(model: object) -> weft.WeftError | None:
    """Returns the error that a damaged model ends in; None for one that is imported."""
    try:
        to_graph(model)
    except weft.WeftError as error:
        return error
    return None


def tried(seed: int, model: object) -> None:
    error = refusal(model)
    assert error is None or error.hint, (seed, error)


def check_damaged(seeds: range) -> None:
    for seed in seeds:
        tried(seed, damaged_graph(random.Random(seed)))


def check_damaged_folders(seeds: range, folder: Path) -> None:
    shutil.copytree(FOLDER / "small", folder)
    files = files_of(folder)
    whole = {p: p.read_bytes() for p in files}
    for seed in seeds:
        rng = random.Random(seed)
        path = rng.choice(files)
        path.unlink()  # the bytes that a graph before maps stay as they are
        path.write_bytes(damaged(rng, whole[path], MARKS))
        tried(seed, folder)
        path.unlink()
        path.write_bytes(whole[path])


@pytest.mark.parametrize("block", range(4))
def test_damaged_graphs(block: int) -> None:
    check_damaged(range(60 * block, 60 * block + 60))


def test_damaged_saved_models(tmp_path: Path) -> None:
    check_damaged_folders(range(100), tmp_path / "small")


@pytest.mark.slow
@pytest.mark.parametrize("block", range(20))
def test_many_damaged_graphs(block: int) -> None:
    check_damaged(range(1000 + 500 * block, 1500 + 500 * block))


@pytest.mark.slow
@pytest.mark.parametrize("block", range(10))
def test_many_damaged_saved_models(block: int, tmp_path: Path) -> None:
    check_damaged_folders(range(1000 + 500 * block, 1500 + 500 * block), tmp_path / "small")


def test_an_attribute_that_is_left_out_has_its_default() -> None:
    axis = node("axis", "Const", value=tensor([1], []))
    assert [repr(v.dtype) for v in to_graph(graph(X, axis, node("y", "ArgMax", "x", "axis"))).outputs] == ["i64"]


def test_a_variable_of_an_open_shape_is_damaged() -> None:
    found = Checkpoint(FOLDER / "small")
    found.entries["w"] = memoryview(field(1, 1) + field(2, shape([-1, -1])) + field(5, 4))
    with pytest.raises(weft.ModelError) as told:
        found.array("w")
    assert str(told.value) == (
        "the variable w is stored in slices, cut short or damaged\n  hint: copy or save the model again"
    )


def test_few_bytes_do_not_ask_for_much_memory() -> None:
    constant = tensor([1.0], [1 << 20, 1 << 20, 1 << 20])
    assert "is damaged" in said(graph(X, node("c", "Const", value=constant), node("y", "Add", "x", "c")))


def test_there_are_operators() -> None:
    assert len(TABLE) > 150
