"""Tensors of damaged files: whatever their fields say, the message names the tensor and what is wrong with it."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from onnx import ModelProto, SparseTensorProto, TensorProto, helper, numpy_helper
from tests.driver.budgets.bombs import model_of, tensor
from tests.frontends.onnx.test_read import external, message, rewrite

DAMAGED = "\n  hint: the file is damaged: export or download it again"


@pytest.mark.parametrize(
    ("key", "value", "said"),
    [
        ("offset", "abc", "its data is said to have the offset 'abc', which is no number of bytes"),
        ("offset", "-16", "its data is said to have the offset '-16', which is no number of bytes"),
        ("offset", "9" * 30, f"its data is said to have the offset '{'9' * 30}', which is no number of bytes"),
        ("offset", "\u0663", "its data is said to have the offset '\u0663', which is no number of bytes"),
        (
            "offset",
            "400000000000",
            "its data is said to begin at byte 400000000000 of {folder}/weights.bin, which has 224 bytes",
        ),
        ("length", "-1", "its data is said to have the length '-1', which is no number of bytes"),
        (
            "length",
            "1099511627776",
            "its data is said to have a length of 1099511627776 bytes, but its shape (6, 8) takes 192",
        ),
        ("length", "5", "its data is said to have a length of 5 bytes, but its shape (6, 8) takes 192"),
        ("location", "a\0b", "its data is said to be in 'a\\x00b', which is no name of a file"),
        ("location", "x" * 5000, f"its data is said to be in '{'x' * 80}', which is no name of a file"),
    ],
)
def test_external_data(key: str, value: str, said: str, tmp_path: Path) -> None:
    path = external(tmp_path)

    def change(t: TensorProto) -> None:
        kept = [(e.key, e.value) for e in t.external_data if e.key != key]
        del t.external_data[:]
        for k, v in [*kept, (key, value)]:
            t.external_data.add(key=k, value=v)

    rewrite(path, change)
    assert message(path) == f"tensor w: {said.format(folder=tmp_path)}{DAMAGED}"


def test_external_data_of_a_shape_that_no_file_holds(tmp_path: Path) -> None:
    path = external(tmp_path)

    def change(t: TensorProto) -> None:
        t.dims[:] = [1 << 31, 1 << 31]
        kept = [(e.key, e.value) for e in t.external_data if e.key != "length"]
        del t.external_data[:]
        for k, v in kept:
            t.external_data.add(key=k, value=v)

    rewrite(path, change)
    assert message(path) == (
        f"tensor w: its data in {tmp_path}/weights.bin ends after 224 of 18446744073709551616 bytes"
        "\n  hint: the file is cut short: download or export it again"
    )


def test_external_data_in_links_that_form_a_circle(tmp_path: Path) -> None:
    path = external(tmp_path)
    (tmp_path / "weights.bin").unlink()
    (tmp_path / "weights.bin").symlink_to("weights.bin")
    assert message(path) == f"tensor w: its data is said to be in 'weights.bin', which is no name of a file{DAMAGED}"


def with_weight(made: TensorProto) -> ModelProto:
    model = model_of([helper.make_node("Identity", ["w"], ["y"])], "y")
    model.graph.initializer.append(made)
    return model


@pytest.mark.parametrize(
    ("weight", "said"),
    [
        (
            TensorProto(name="w", data_type=1, dims=[0, 1 << 62], raw_data=b""),
            "no array has its shape (0, 4611686018427387904)",
        ),
        (
            TensorProto(name="w", data_type=1, dims=[1] * 100, raw_data=bytes(4)),
            f"no array has its shape ({'1, ' * 8}...)",
        ),
        (TensorProto(name="w", data_type=1, dims=[2, -1], raw_data=bytes(8)), "it is of shape (2, -1)"),
        (
            TensorProto(name="w", data_type=1, dims=[2], int32_data=[1, 2]),
            "its shape (2,) of f32 takes 2 numbers, but it has 0",
        ),
        (
            TensorProto(name="w", data_type=1, dims=[3], raw_data=bytes(4)),
            "its shape (3,) of f32 takes 12 bytes, but it has 4",
        ),
    ],
    ids=range(5),
)
def test_weights(weight: TensorProto, said: str) -> None:
    assert message(with_weight(weight)) == f"tensor w: {said}{DAMAGED}"


def test_a_type_that_there_is_not() -> None:
    said = message(with_weight(TensorProto(name="w", data_type=77, dims=[1], raw_data=bytes(4))))
    assert said.startswith("tensor w: elements of type number 77 are not supported\n")


@pytest.mark.parametrize("dims", [[1 << 40, 1 << 40], [-2, 3], [1] * 100, [2]])
def test_sparse_weights(dims: list[int]) -> None:
    values = numpy_helper.from_array(np.ones(1, np.float32), "w")
    sparse = SparseTensorProto(values=values, indices=numpy_helper.from_array(np.array([7]), "i"), dims=dims)
    model = model_of([helper.make_node("Identity", ["w"], ["y"])], "y")
    model.graph.sparse_initializer.append(sparse)
    assert message(model).startswith(
        "sparse tensor w: its indices" if dims == [2] else "sparse tensor w: it has the shape"
    )


def test_operator_sets_that_contradict_each_other() -> None:
    model = model_of([helper.make_node("Abs", ["v0"], ["y"])], "y")
    model.opset_import.append(helper.make_opsetid("ai.onnx", 7))
    assert "the model uses operator sets 20 and 7 of ONNX at once" in message(model)


def test_an_input_of_very_many_dimensions() -> None:
    model = model_of([helper.make_node("Abs", ["v0"], ["y"])], "y", [tensor("v0", [1] * 100_000)])
    assert message(model) == (
        "input v0: a tensor would have 100000 dimensions; 64 is the most\n  hint: export the model again"
    )


def test_very_many_new_dimensions() -> None:
    nodes = [helper.make_node("Unsqueeze", ["v0", "axes"], ["y"])]
    said = message(model_of(nodes, "y", constants={"axes": np.arange(3000)}))
    assert "a tensor would have 300" in said
    assert "dimensions; 64 is the most" in said
