"""A compiled model says where it comes from, also after it was saved, or found in the cache."""

from __future__ import annotations

import hashlib
import subprocess
from pathlib import Path

import onnx
import pytest
from tests.models import conv_bn_relu, mlp

import weft
from weft.driver.export.artifact_notes import arena_bytes, options_text
from weft.driver.options import CompileOptions
from weft.runtime.metadata import ModelMetadata


def test_notes_of_a_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    onnx.save(conv_bn_relu(), "conv.onnx")
    for model in (weft.compile("conv.onnx"), weft.compile("conv.onnx")):  # the second is the cache's
        model.save("conv.weft")
        notes = weft.load("conv.weft").package.notes
        how = {"weft", "llvm", "model", "options", "records", "memory"}
        assert set(notes) == how | set(ModelMetadata().notes())
        assert (notes["weft"], notes["records"]) == (weft.__version__, "none")
        assert notes["model"] == f"{hashlib.sha256(Path('conv.onnx').read_bytes()).hexdigest()}  conv.onnx\n"
        assert notes["memory"].startswith("buffer ")
        Path("sums").write_text(notes["model"])
        done = subprocess.run(["sha256sum", "-c", "sums"], capture_output=True, text=True, check=True)
        assert done.stdout == "conv.onnx: OK\n"


def test_all_files_of_a_model_are_named(tmp_path: Path) -> None:
    onnx.save(mlp(), tmp_path / "m.onnx", save_as_external_data=True, location="weights.bin", size_threshold=0)
    lines = weft.compile(str(tmp_path / "m.onnx")).package.notes["model"].splitlines()
    assert [line.split("  ")[1] for line in lines] == ["m.onnx", "weights.bin"]


def test_a_model_in_memory_has_no_file() -> None:
    assert weft.compile(mlp()).package.notes["model"] == ""


def test_the_arena_is_known_where_shapes_are() -> None:
    fixed, open_ = weft.build(mlp(batch=7)), weft.build(mlp())
    assert fixed.package.arena == arena_bytes(fixed.plan)
    assert str(fixed.plan).splitlines()[-1].startswith(f"arena {fixed.package.arena} bytes")
    assert open_.package.arena is None


def test_options_as_text() -> None:
    assert options_text(CompileOptions()) == "opt_level=3 precision=model"
    assert options_text(CompileOptions(1, "strict", without=("fusion", "memory"))) == (
        "opt_level=1 precision=strict without=fusion,memory"
    )
