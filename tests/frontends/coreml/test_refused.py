"""Models of Core ML that are refused: what the errors say; and damaged files."""

from __future__ import annotations

import random
import shutil
from pathlib import Path
from typing import Any

import pytest
from tests.frontends.coreml.messages import array, layer, message, model, network, number, operation, program
from tests.support.damaged_files import damaged

import weft
from weft.frontends.dispatch import frontend_of, to_graph

FOLDER = Path(__file__).parent / "networks"


def said(given: Any, kind: type[weft.ModelError] = weft.ModelError) -> str:
    with pytest.raises(kind) as caught:
        to_graph(given)
    return str(caught.value)


def test_all_unknown_operations_are_named() -> None:
    made = program(operation("mine", "a", x="x"), operation("relu", "b", x="a"), operation("yours", "y", x="b"))
    assert said(made, weft.UnsupportedOperators) == (
        "the model uses 2 operators that Weft does not have:\n"
        "  mine, 1 node: a\n"
        "  yours, 1 node: y\n"
        "  hint: build the model from other operations"
    )
    kinds = network(array("x", 3), layer(500, name="first"), layer(2000, name="second"))
    assert said(kinds, weft.UnsupportedOperators) == (
        "the model uses 2 operators that Weft does not have:\n"
        "  custom, 1 node: first\n"
        "  layer of kind 2000, 1 node: second\n"
        "  hint: kinds are fields of the message NeuralNetworkLayer; convert the model to an mlprogram"
    )


def test_messages() -> None:
    assert said(program(operation("relu", "y", x="z"))) == (
        "relu y: it uses 'z', which nothing before it makes\n  hint: convert the model again with coremltools"
    )
    assert said(program(operation("relu", "y"))) == (
        "relu y: its input 'x' is absent, not a tensor\n  hint: convert the model again with coremltools"
    )
    assert said(program(operation("read_state", "y", input="x"))) == (
        "read_state y: its input 'input' is no state\n  hint: convert the model again with coremltools"
    )
    assert said(model(402, b"", array("x", 3))) == (
        "a tree classifier of Core ML is not supported\n  hint: give an mlprogram or a neuralnetwork"
    )
    assert said(network(array("x", 3, 4, 4), layer(975, message((1, 1), (2, 1 << 30))))) == (
        "splitND l: it makes 1073741824 pieces, and has 1 results\n  hint: convert the model again with coremltools"
    )
    upsampled = layer(210, message((1, number(1 << 30) * 2)))
    assert said(network(array("x", 3, 4, 4), upsampled)) == (
        "upsample l: resampling dimension 2 of reshape: f32[1, 3, 4, 4], along 4294967296 elements, is not supported; "
        "4194304 are the most"
    )
    convolution = layer(100, message((1, 2), (2, 3), (90, message((1, bytes(8))))))
    assert said(network(array("x", 3, 4, 4), convolution)) == (
        "convolution l: its weights are 2 numbers, not those of [2, 3, 3, 3]\n"
        "  hint: convert the model again with coremltools"
    )


def test_packages_that_are_not_whole(tmp_path: Path) -> None:
    folder = tmp_path / "a.mlpackage"
    shutil.copytree(FOLDER / "residual.mlpackage", folder)
    next(folder.rglob("weight.bin")).unlink()
    assert said(folder).endswith(
        ": a constant is damaged, of a type that is not supported, or not in the file of weights\n"
        "  hint: copy the whole model again, weights/weight.bin included"
    )
    next(folder.rglob("model.mlmodel")).unlink()
    assert said(folder, weft.ModelError).startswith(f"there is no file {folder.resolve()}/Data/")
    for text in ('{"rootModelIdentifier": 0}', '{"rootModelIdentifier": 9, "itemInfoEntries": "a"}'):
        (folder / "Manifest.json").write_text(text)
        assert said(folder) == f"{folder / 'Manifest.json'} is damaged\n  hint: save the package again with coremltools"
    entries = '{"rootModelIdentifier": "a", "itemInfoEntries": {"a": {"path": "../../b"}}}'
    (folder / "Manifest.json").write_text(entries)
    assert "which is outside of the package" in said(folder)
    (folder / "Manifest.json").unlink()
    assert said(folder).startswith(f"{folder} is a folder, not a model")


MARKS = [b"\x08", b"\x0a\x03", b"\xff\xff\xff\xff\x0f", b"\x12", b"\0\0\0\0", b"\x7f", b"\x80" * 10]


def _damaged_models(folder: Path, seeds: range) -> int:
    """Imports damaged copies of models, one a seed; returns how many were refused. Only Weft's errors are let through."""
    refused = list[weft.WeftError]()
    for name in ("residual", "attention", "recurrent"):
        shutil.copytree(FOLDER / f"{name}.mlpackage", folder / name)
    files = [*folder.rglob("model.mlmodel"), *folder.rglob("weight.bin"), FOLDER / "segmenter.mlmodel"]
    kept = {file: file.read_bytes() for file in files}
    frontend = frontend_of(FOLDER / "segmenter.mlmodel")
    for seed in seeds:
        random_ = random.Random(seed)
        file = random_.choice(files)
        data = damaged(random_, kept[file], MARKS) or b"\x08"
        try:
            if file.is_relative_to(folder):
                file.write_bytes(data)
                frontend.to_graph(folder / file.relative_to(folder).parts[0])
            else:
                frontend.to_graph(data)
        except weft.WeftError as error:
            refused.append(error)
        if file.is_relative_to(folder):
            file.unlink()
            file.write_bytes(kept[file])
    return len(refused)


def test_damaged_models_end_in_errors_of_weft(tmp_path: Path) -> None:
    assert _damaged_models(tmp_path, range(150)) > 50


@pytest.mark.slow
def test_many_damaged_models(tmp_path: Path) -> None:
    assert _damaged_models(tmp_path, range(1000, 11_000)) > 4000
