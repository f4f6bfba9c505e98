"""Models whose weights do not fit in the memory that a process may have: they are computed in the file that is written."""

from __future__ import annotations

import errno
import json
import os
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import onnx
import pytest
from benchmarks.large_model import WIDTH as LARGE
from benchmarks.large_model import model_of, write_weights
from tests.models import mlp

from weft.cost import LEAST_STREAMED
from weft.driver.build import build
from weft.driver.cache.code_cache import Cache
from weft.driver.compile import compile_package
from weft.driver.host import pack_constants
from weft.driver.options import CompileOptions
from weft.native import _rt
from weft.runtime import artifact
from weft.runtime.artifact import artifact_parts, read_artifact, write_artifact
from weft.runtime.lazy_constants import Done, LazyConstants
from weft.runtime.model import Model, load
from weft.runtime.package import Package
from weft.support.errors import ArtifactError
from weft.targets import host

WIDTHS = (1024, 3072, 3072, 1024)
WEIGHTS = 4 * (2 * 1024 * 3072 + 3072 * 3072)
COMPILER = 40 << 20
"""Bytes of its own that a process takes to compile, besides weights."""
PROGRAM = 80 << 20
"""Bytes of LLVM's code and of Python's that are read from their files while compiling."""

LIMITED = """
import json, resource, sys
import numpy as np
import weft.driver.build
from weft.codegen import backend_of
from weft.driver.compile import compile_package
from weft.driver.host import pack_constants
from weft.driver.options import CompileOptions
from weft.frontends.onnx.importer import from_onnx  # with ONNX's package, and all operators
from weft.runtime.artifact import write_artifact
from weft.runtime.model import load
from weft.targets import host

def held(what):
    line = next(s for s in open("/proc/self/status") if s.startswith(what))
    return int(line.split()[1]) << 10

model, saved, least, most = sys.argv[1], sys.argv[2], int(sys.argv[3]), int(sys.argv[4])
pack_constants.LEAST_STREAMED = least
target = host()
backend_of(target)
before = held("VmRSS")
limit = held("VmData") + most
resource.setrlimit(resource.RLIMIT_DATA, (limit, limit))
write_artifact(compile_package(model, target, CompileOptions(), to_file=True), saved)
peak = held("VmHWM")
loaded = load(saved, threads=1, verify=False)
y = loaded(np.ones((1, loaded.inputs[0].shape[1]), np.float32))
print(json.dumps({"before": before, "peak": peak, "y": y[0, :8].tolist()}))
"""


def limited(model: Path, least: int, most: int) -> subprocess.CompletedProcess[str]:
    """Compiles *model* to a file in a process that may have *most* more bytes of its own, then loads it and runs it there."""
    command = [sys.executable, "-c", LIMITED, str(model), str(model.with_suffix(".weft")), str(least), str(most)]
    return subprocess.run(command, capture_output=True, text=True, check=False)


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("large") / "large.onnx"
    onnx.save(mlp(1, WIDTHS), path, save_as_external_data=True, location="weights.bin", size_threshold=1024)
    return path


def test_a_process_compiles_and_runs_a_model_larger_than_its_memory(model: Path) -> None:
    """Its own memory, which the system can't write to a file, stays below what the compiler takes: weights are none of it."""
    assert COMPILER < 0.7 * WEIGHTS
    found = json.loads(limited(model, 0, COMPILER).stdout)
    assert found["peak"] <= found["before"] + 1.3 * WEIGHTS + COMPILER + PROGRAM
    y = Model(build(str(model), host()).package)(np.ones((1, WIDTHS[0]), np.float32))
    np.testing.assert_array_equal(found["y"], np.asarray(y)[0, :8])
    assert "MemoryError" in limited(model, WEIGHTS * 2, COMPILER).stderr  # computed in memory, they do not fit


@pytest.mark.slow
def test_a_model_of_a_gigabyte_is_compiled_and_run_in_a_tenth_of_its_weights(tmp_path: Path) -> None:
    layers = 4
    weights = 4 * LARGE * LARGE * layers
    write_weights(tmp_path / "weights.bin", layers)
    onnx.save_model(model_of(layers, "weights.bin"), tmp_path / "large.onnx")
    found = json.loads(limited(tmp_path / "large.onnx", LEAST_STREAMED, weights // 10).stdout)
    assert found["peak"] <= 1.3 * weights  # imports included
    x = np.ones((1, LARGE), np.float32)
    for k in range(layers):
        w = np.memmap(tmp_path / "weights.bin", np.float32, "r", 4 * LARGE * LARGE * k, (LARGE, LARGE))
        x = np.maximum(x @ w, 0)
    np.testing.assert_allclose(found["y"], x[0, :8], rtol=1e-3, atol=1e-3)


@pytest.fixture
def streamed(model: Path, monkeypatch: pytest.MonkeyPatch) -> Package:
    """The model as a package whose constants are computed when it is written."""
    monkeypatch.setattr(pack_constants, "LEAST_STREAMED", 0)
    made = compile_package(str(model), host(), CompileOptions(), to_file=True)
    assert isinstance(made.constants, LazyConstants)
    return made


def test_a_streamed_file_is_the_same_bytes(model: Path, streamed: Package, tmp_path: Path) -> None:
    write_artifact(streamed, tmp_path / "streamed.weft")
    assert (tmp_path / "streamed.weft").read_bytes() == b"".join(artifact_parts(build(str(model), host()).package))
    x = np.ones((1, WIDTHS[0]), np.float32)
    np.testing.assert_array_equal(load(tmp_path / "streamed.weft", verify=True)(x), Model(streamed)(x))


def test_the_cache_gives_what_it_streamed_as_a_map(streamed: Package, tmp_path: Path) -> None:
    kept = Cache(tmp_path / "cache").put_package("0" * 64, streamed)
    assert isinstance(kept.constants, _rt.Block)
    assert kept.constants.nbytes == streamed.constants.nbytes  # type: ignore[union-attr]
    assert Cache(tmp_path / "small", limit=WEIGHTS // 2).put_package("0" * 64, streamed) is streamed
    assert not (tmp_path / "small").exists()  # it would push all else out, and itself


def test_a_compilation_with_a_cache_maps_its_weights(
    model: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(pack_constants, "LEAST_STREAMED", 0)
    cache = Cache(tmp_path)
    written = compile_package(str(model), host(), CompileOptions(), cache=cache, to_file=True)
    assert isinstance(written.constants, LazyConstants)
    assert [e.kind for e in cache.entries() if e.kind == "model"] == []  # the file is what the user keeps
    kept = compile_package(str(model), host(), CompileOptions(), cache=cache)
    assert isinstance(kept.constants, _rt.Block)
    assert [e.nbytes >= WEIGHTS for e in cache.entries() if e.kind == "model"] == [True]


def test_a_full_disk_is_told_before_anything_is_computed(
    streamed: Package, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    def full(file: int, begin: int, nbytes: int) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(os, "posix_fallocate", full)
    unused = LazyConstants(WEIGHTS, lambda block, done: pytest.fail("it was computed"))
    with pytest.raises(ArtifactError, match=r"m\.weft can't be written: No space left on device"):
        write_artifact(replace(streamed, constants=unused), tmp_path / "m.weft")
    assert list(tmp_path.iterdir()) == []


def test_progress_in_uneven_steps_gives_the_same_checksum(streamed: Package, tmp_path: Path) -> None:
    """What is written is summed in whole pieces, however far it is when it is told; the last one may be a part of one."""
    data = np.random.default_rng(0).integers(0, 256, 3 * _rt.PIECE + 777, np.uint8)

    def write(block: memoryview, done: Done) -> None:
        block[:] = data.data
        for end in (0, 1, _rt.PIECE - 1, _rt.PIECE + 1, 3 * _rt.PIECE, 3 * _rt.PIECE + 776):
            done(end)

    write_artifact(replace(streamed, constants=LazyConstants(data.size, write)), tmp_path / "m.weft")
    assert bytes(memoryview(read_artifact(tmp_path / "m.weft", verify=True).constants)) == data.tobytes()  # type: ignore[arg-type]


def test_weights_of_large_files_are_summed_only_when_that_is_asked_for(
    streamed: Package, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    path = tmp_path / "m.weft"
    write_artifact(streamed, path)
    with path.open("r+b") as file:
        file.seek(-1, os.SEEK_END)
        file.write(b"\x55")
    with pytest.raises(ArtifactError, match="its checksum is wrong"):
        load(path)
    monkeypatch.setattr(artifact, "MOST_SUMMED", 1 << 20)
    assert load(path).inputs[0].shape == (1, WIDTHS[0])
    with pytest.raises(ArtifactError, match="its checksum is wrong"):
        load(path, verify=True)
    os.truncate(path, path.stat().st_size - 1)
    with pytest.raises(ArtifactError, match="the file is truncated"):
        load(path)
