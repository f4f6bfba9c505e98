"""A model is read by the frontend that claims it, by its content; no other's library is imported for that."""

from __future__ import annotations

import os
import re
import stat
import subprocess
import sys
from pathlib import Path

import pytest
from tests.frontends.onnx.nodes import float_inputs, model_of, node
from tests.support.formats import READS

from weft.frontends.content import head_of, is_instance
from weft.frontends.dispatch import FRONTENDS, files_of, frontend_of, to_graph
from weft.support.errors import MissingFile, ModelError, ToolchainError
from weft.support.lazy_import import resolve

LIBRARIES = {"onnx": "onnx", "torch": "torch", "keras": "h5py"}
"""What a frontend imports, where it imports anything."""

MODEL = model_of([node("Relu", "x")], float_inputs(x=(2, 3)))


@pytest.mark.parametrize("name", FRONTENDS)
def test_a_folder_has_what_the_table_says(name: str) -> None:
    if name in LIBRARIES:
        pytest.importorskip(LIBRARIES[name])
    assert resolve(f"{FRONTENDS[name]}.claims:READS") in READS
    assert not resolve(f"{FRONTENDS[name]}.claims:claims")(object(), b"")
    assert not resolve(f"{FRONTENDS[name]}.claims:claims")(b"#!/bin/sh", b"#!/bin/sh")
    found = resolve(f"{FRONTENDS[name]}.frontend:FRONTEND")
    assert callable(found.files)
    assert callable(found.to_graph)


def test_onnx_is_told_by_its_bytes_whatever_the_file_is_called(tmp_path: Path) -> None:
    path = tmp_path / "model.txt"
    path.write_bytes(MODEL.SerializeToString())
    assert files_of(path) == [path]
    assert head_of(path) == head_of(MODEL.SerializeToString())
    for model in (path, str(path), path.read_bytes(), MODEL):
        assert [n.op for n in to_graph(model).nodes] == ["relu"]


def said(model: object) -> str:
    with pytest.raises(ModelError) as caught:
        frontend_of(model)
    return str(caught.value)


@pytest.mark.parametrize("begin", [b" " * 4000, b"\n" * 4000, b"// a\n \t" * 600])
def test_blanks_at_the_beginning_are_passed_over_once(begin: bytes) -> None:
    assert not any(resolve(f"{p}.claims:claims")(begin + b"x", begin + b"x") for p in FRONTENDS.values())
    assert resolve(f"{FRONTENDS['jax']}.claims:claims")(begin + b"module {", begin + b"module {")


def test_refused(tmp_path: Path) -> None:
    assert said(3) == f"an object of type int is not a model that Weft can read\n  hint: {READS}"
    text = "the model given as bytes is not a model that Weft can read; it begins with 'PK??'"
    assert said(b"PK\x03\x04".replace(b"\x03\x04", b"\xff\xfe")) == f"{text}\n  hint: {READS}"
    assert said(b"") == "the model given as bytes is empty\n  hint: download or export it again"
    with pytest.raises(MissingFile):
        frontend_of(tmp_path / "nowhere")
    unreadable = Path("/proc/self/mem")  # nothing is mapped at its beginning
    if unreadable.exists():
        assert said(unreadable) == f"{unreadable} can't be read: Input/output error\n  hint: give another path"
        socket = tmp_path / "socket"
        os.mknod(socket, stat.S_IFSOCK | 0o600)
        assert said(socket) == f"{socket} can't be read: No such device or address\n  hint: give another path"


def test_a_library_that_is_not_installed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "weft.frontends.onnx.frontend", None)
    with pytest.raises(ModuleNotFoundError):  # a module of Weft's own: a bug, not an extra
        frontend_of(MODEL)
    monkeypatch.delitem(sys.modules, "weft.frontends.onnx.frontend")
    monkeypatch.setattr("weft.frontends.dispatch.resolve", _without_onnx)
    with pytest.raises(ToolchainError) as caught:
        frontend_of(MODEL)
    assert str(caught.value) == (
        "reading this model needs onnx, which is not installed\n"
        "  hint: install Weft with its extra 'onnx': pip install '.[onnx]' in the folder of the checkout"
    )


def _without_onnx(place: str) -> object:
    if place.endswith(":FRONTEND"):
        raise ModuleNotFoundError("No module named 'onnx'", name="onnx")
    return resolve(place)


def test_looking_at_a_model_imports_no_library() -> None:
    code = (
        "import sys\n"
        "from weft.frontends.dispatch import frontend_of\n"
        "from weft.support.errors import ModelError\n"
        "for model in (3, b'#!/bin/sh'):\n"
        "    try: frontend_of(model)\n"
        "    except ModelError: pass\n"
        "print(sorted({'onnx', 'torch'} & set(sys.modules)))\n"
        "frontend_of(b'\\x08\\x07')\n"
        "print(sorted({'onnx', 'torch'} & set(sys.modules)))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.split("\n")[:2] == ["[]", "['onnx']"]


def test_classes_are_told_by_name() -> None:
    assert is_instance(True, "builtins.int")
    assert not is_instance(1, "builtins.bool")


@pytest.mark.parametrize("name", FRONTENDS)
def test_a_frontend_knows_no_other(name: str) -> None:
    package = resolve(f"{FRONTENDS[name]}.claims:__file__")
    others = [p for p in FRONTENDS.values() if p != FRONTENDS[name]]
    found = [
        str(path)
        for path in Path(package).parent.rglob("*.py")
        if any(re.search(rf"\b{re.escape(other)}\b", path.read_text(encoding="utf-8")) for other in others)
    ]
    assert found == []
