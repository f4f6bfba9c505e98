"""Models that are refused: what the errors say."""

from __future__ import annotations

import io
import json
import zipfile
from pathlib import Path
from typing import Any

import numpy as np
import pytest

pytest.importorskip("h5py")

import h5py
from tests.frontends.keras.saved import FOLDER, archive, layer, parts_of, sequence

import weft
from weft.frontends.dispatch import to_graph
from weft.support.errors import ModelError, UnsupportedOperators


def said(model: Any, kind: type[ModelError] = ModelError) -> str:
    with pytest.raises(kind) as caught:
        to_graph(model)
    return str(caught.value)


def test_all_unknown_layers_are_named_and_no_code_is_run() -> None:
    own = {"module": "mine", "class_name": "Dense", "config": {"name": "third"}}
    code = layer("Lambda", "first", function={"class_name": "__lambda__", "config": {"code": "4wEAAA"}})
    model = sequence([4], code, layer("ReLU"), layer("Lambda", "second"), own)
    assert said(archive(model), UnsupportedOperators) == (
        "the model uses 2 operators that Weft does not have:\n"
        "  Lambda, 2 nodes: first, second\n"
        "  mine.Dense, 1 node: third\n"
        "  hint: build the model from other layers; code of your own (Lambda, subclassed layers and models) is never run"
    )


def test_unknown_layers_inside_of_others_are_named() -> None:
    inner = layer("TimeDistributed", layer=layer("Secret", "inside"))
    assert "Secret, 1 node: inside" in said(archive(sequence([4, 4], inner)), UnsupportedOperators)


@pytest.mark.parametrize(
    ("layers", "text"),
    [
        ([layer("Activation", activation="mine")], "the activation function 'mine' is not supported"),
        ([layer("Dense", dtype="mixed_float16")], "layers that compute in mixed_float16 are not supported"),
        ([layer("Dense")], "its weight 0 is not among the 0 in the file; it should have 2 dimensions"),
        ([layer("Conv2D", kernel_size=3)], "its input should have 4 dimensions: x: f32[batch, 4]"),
        ([layer("LSTM")], "its input should have 3 dimensions: x: f32[batch, 4]"),
        ([layer("Reshape", target_shape=3)], "its setting 'target_shape' is 3"),
        ([layer("BatchNormalization", axis="last")], "its setting axis='last' is not supported"),
        ([layer("Permute", dims=["a"])], "its settings and inputs do not fit together (ValueError"),
    ],
)
def test_a_layer_that_is_refused_is_named(layers: list[dict[str, Any]], text: str) -> None:
    message = said(archive(sequence([4], *layers)))
    assert message.startswith(f"{layers[0]['class_name']} {layers[0]['config']['name']}: {text}")
    assert "\n  hint: " in message


def test_a_layer_alone_is_no_model() -> None:
    assert said(archive(layer("Dense"))).startswith("the model is a Dense, which only code of its own describes")


def test_layers_in_a_cycle_are_refused() -> None:
    call = [[["b", 0, 0, {}]]], [[["a", 0, 0, {}]]]
    a, b = ({**layer("ReLU", n), "name": n, "inbound_nodes": c} for n, c in zip("ab", call, strict=True))
    given = {**layer("InputLayer", "x", batch_shape=[None, 4]), "name": "x"}
    config = {"name": "m", "layers": [given, a, b], "input_layers": [["x", 0, 0]], "output_layers": [["a", 0, 0]]}
    assert said(archive({"class_name": "Functional", "config": config})).startswith(
        "Functional m: its layers form a cycle"
    )


def test_models_that_share_models_without_end_are_refused() -> None:
    inner: dict[str, Any] = sequence([4], layer("ReLU"))
    for k in range(20):
        histories = [["x", 0, 0], ["m", 0, 0]]
        calls = [
            {"args": [{"class_name": "__keras_tensor__", "config": {"keras_history": h}}], "kwargs": {}}
            for h in histories
        ]
        inner = {**inner, "name": "m", "inbound_nodes": calls}
        given = {**layer("InputLayer", "x", batch_shape=[None, 4]), "name": "x"}
        config = {
            "name": "m",
            "layers": [given, inner],
            "input_layers": [["x", 0, 0]],
            "output_layers": [["m", 1 + (k > 0), 0]],
        }
        inner = {"class_name": "Functional", "config": config}
    assert "calls of layers" in said(archive(inner))


def test_files_that_are_no_models(tmp_path: Path) -> None:
    empty = io.BytesIO()
    with zipfile.ZipFile(empty, "w") as made:
        made.writestr("metadata.json", "{}")
    assert said(empty.getvalue()).startswith("the model given as bytes is an archive without config.json")
    whole = (FOLDER / "nested.keras").read_bytes()
    (tmp_path / "half.keras").write_bytes(whole[: len(whole) // 2])
    assert said(tmp_path / "half.keras").startswith(f"{tmp_path / 'half.keras'} is a damaged archive")
    assert "without a model's configuration" in said(weights_alone())
    assert "is damaged" in said(archive(b"{"))
    assert "is a list, not an object" in said(archive(b"[]"))
    assert "is damaged" in said(archive(b"[" * 100_000))


def test_an_archive_whose_files_would_begin_before_it_is_damaged() -> None:
    whole = bytearray((FOLDER / "nested.keras").read_bytes())
    where = whole.rindex(b"PK\x05\x06") + 16  # of the number that says where the directory begins
    begin = int.from_bytes(whole[where : where + 4], "little")
    whole[where : where + 4] = (begin + len(whole)).to_bytes(4, "little")
    assert "is a damaged archive: model.weights.h5 is at no place: negative seek value" in said(bytes(whole))


def weights_alone() -> bytes:
    with zipfile.ZipFile(FOLDER / "nested.keras") as held:
        return held.read("model.weights.h5")


def test_an_archive_that_grows_out_of_proportion_is_not_unpacked() -> None:
    made = io.BytesIO()
    with zipfile.ZipFile(made, "w", zipfile.ZIP_DEFLATED) as held:
        held.writestr("config.json", "{}")
        held.writestr("model.weights.h5", bytes(1 << 24))
    assert "members far larger than that" in said(made.getvalue())


def test_a_symbolic_size_beside_the_batch_can_be_given() -> None:
    weights = {"layers/dense/vars/0": np.eye(4, dtype=np.float32), "layers/dense/vars/1": np.ones(4, np.float32)}
    config = sequence([None, 4], layer("Dense", activation="relu"), layer("GlobalAveragePooling1D"))
    model = weft.compile(archive(config, weights))
    x = np.random.default_rng(0).normal(size=(2, 5, 4)).astype(np.float32)
    np.testing.assert_allclose(model(x), np.maximum(x + 1, 0).mean(axis=1), rtol=1e-5, atol=1e-6)


def test_a_heap_on_which_hdf5_never_ends_is_refused() -> None:
    whole = bytearray((FOLDER / "sequences.h5").read_bytes())
    heap = whole.index(b"GCOL\x01")
    whole[heap + 16 : heap + 32] = bytes(16)
    assert "is damaged: a heap of its HDF5 file has free space of no bytes" in said(bytes(whole))


def test_an_attribute_of_lists_is_refused() -> None:
    """The names of weights as lists of bytes of any length, on whose addresses HDF5 crashes."""
    whole = io.BytesIO((FOLDER / "sequences.h5").read_bytes())
    with h5py.File(whole, "r+") as file:
        lists = np.array([np.zeros(3, np.uint8), np.zeros(2, np.uint8)], object)
        file["model_weights/conv1d"].attrs.create("weight_names", lists, dtype=h5py.vlen_dtype(np.uint8))
    assert "the attribute 'weight_names' of /model_weights/conv1d is damaged: it is of no texts or numbers" in said(
        whole.getvalue()
    )


def test_a_name_that_is_no_text_is_refused() -> None:
    """HDF5 tells of it in a text with the name, which h5py can't decode."""
    config, weights = parts_of("augmented.keras")
    made = io.BytesIO()
    with zipfile.ZipFile(made, "w") as held:
        held.writestr("config.json", json.dumps(config))
        held.writestr("model.weights.h5", weights.replace(b"\0flatten\0", b"\0\x80latten\0"))
    assert "can't be read: UnicodeDecodeError" in said(made.getvalue())
