"""The key of a compiled model changes with all that its code depends on, and with nothing else."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from tests.models import mlp

import weft
from weft.driver import build as build_module
from weft.driver.cache import cache_key as key_module
from weft.driver.cache import source_hash as source_hash_module
from weft.driver.cache.cache_folder import NAME
from weft.driver.cache.cache_key import Shapes, changed_since, find_key, make_key
from weft.driver.cache.code_cache import Cache
from weft.driver.cache.source_hash import source_hash
from weft.driver.options import CompileOptions
from weft.native import _rt
from weft.targets import Target, cpu, host

OPTIONS = CompileOptions()


@pytest.fixture
def model(tmp_path: Path) -> Path:
    path = tmp_path / "mlp.onnx"
    path.write_bytes(mlp().SerializeToString())
    return path


@pytest.fixture
def builds(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> list[object]:
    """The models that were built while the test ran, in an empty cache."""
    monkeypatch.setenv("WEFT_CACHE_DIR", str(tmp_path / "cache"))
    built: list[object] = []
    real = weft.build

    def build(model: object, *args: Any, **named: Any) -> Any:
        built.append(model)
        return real(model, *args, **named)

    monkeypatch.setattr(build_module, "build", build)
    return built


def key(
    model: Path, target: Target | None = None, options: CompileOptions = OPTIONS, shapes: Shapes | None = None
) -> str | None:
    return make_key(model, [model], target or host(), options, shapes)


def test_a_model_is_built_once(model: Path, builds: list[object], monkeypatch: pytest.MonkeyPatch) -> None:
    weft.compile(model)
    weft.compile(str(model))
    monkeypatch.chdir(model.parent)
    weft.compile(model.name)
    assert builds == [model]


def test_a_model_given_as_bytes_is_built_once(model: Path, builds: list[object]) -> None:
    data = model.read_bytes()
    weft.compile(data)
    weft.compile(bytes(bytearray(data)))
    assert builds == [data]


def test_kernels_of_a_model_in_memory_are_reused(builds: list[object], tmp_path: Path) -> None:
    weft.compile(mlp())
    before = {p: p.stat().st_ino for p in (tmp_path / "cache" / NAME).iterdir()}
    weft.compile(mlp())
    assert {p: p.stat().st_ino for p in (tmp_path / "cache" / NAME).iterdir()} == before
    assert len(builds) == 2


@pytest.mark.sampled(1)
@pytest.mark.parametrize(
    "change",
    [
        lambda m: m.write_bytes(mlp(seed=1).SerializeToString()),
        lambda m: os.utime(m, ns=(1, 1)),
        lambda m: Path(shutil.copy(m, m.with_suffix(".new"))).replace(m),
    ],
    ids=["content", "time", "replaced"],
)
def test_a_changed_file_is_built_again(model: Path, builds: list[object], change: Callable[[Path], object]) -> None:
    weft.compile(model)
    change(model)
    weft.compile(model)
    assert builds == [model, model]


def test_external_data_is_part_of_the_model(tmp_path: Path, builds: list[object]) -> None:
    proto = onnx.load_from_string(mlp().SerializeToString())
    path, x = tmp_path / "large.onnx", np.ones((2, 24), np.float32)
    onnx.save(proto, path, save_as_external_data=True, location="weights.bin", size_threshold=0)
    first = np.asarray(weft.compile(path)(x))
    assert np.array_equal(first, np.asarray(weft.compile(path)(x)))
    assert builds == [path]
    weights = tmp_path / "weights.bin"
    weights.write_bytes(bytes(weights.stat().st_size))
    assert not np.array_equal(first, np.asarray(weft.compile(path)(x)))
    assert builds == [path, path]


def test_a_missing_file_has_no_key(model: Path) -> None:
    assert key(model) is not None
    assert make_key(model, [model, model.with_name("gone")], host(), OPTIONS, None) is None
    assert make_key(mlp(), (), host(), OPTIONS, None) is None


def test_a_file_that_changes_meanwhile_is_not_kept(model: Path, builds: list[object]) -> None:
    def touch(stage: str, done: int, total: int) -> None:
        os.utime(model)

    weft.compile(model, progress=touch)
    weft.compile(model)
    assert builds == [model, model]


def test_changes_are_noticed(model: Path) -> None:
    after = max(model.stat().st_mtime_ns, model.stat().st_ctime_ns)
    assert not changed_since([model], after)
    assert changed_since([model], after - 1)
    assert changed_since([model.with_name("gone")], after)


def test_the_key_has_all_that_is_asked(model: Path) -> None:
    keys = [
        key(model),
        key(model, cpu("avx2")),
        key(model, host().having(l2=1)),
        key(model, shapes={"batch": 2}),
        key(model, shapes={"batch": 3}),
        key(model, shapes={"x": (3, 24)}),
        key(model, options=CompileOptions(opt_level=1)),
        key(model, options=CompileOptions(precision="strict")),
        key(model, options=CompileOptions(verify=True)),
        key(model, options=CompileOptions(denormals="flush")),
    ]
    assert len(set(keys)) == len(keys)
    assert key(model, shapes={}) == key(model)


def test_the_key_has_the_compiler(model: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    before = key(model)
    with monkeypatch.context() as patch:
        patch.setattr(key_module, "backend_facts", lambda target: "another version")
        assert key(model) != before
    with monkeypatch.context() as patch:
        patch.setattr(key_module, "source_hash", lambda: "another source")
        assert key(model) != before
    assert key(model) == before


def test_an_empty_cache_knows_no_key(model: Path, tmp_path: Path) -> None:
    assert find_key(model, host(), OPTIONS, None, Cache(tmp_path / "empty")) is None
    assert find_key(model.with_name("gone"), host(), OPTIONS, None, Cache(tmp_path / "empty")) is None


def test_the_native_part_counts(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    source_hash.cache_clear()
    before = source_hash()
    extension = tmp_path / "extension"
    extension.write_bytes(Path(_rt.__file__).read_bytes() + b"!")
    with monkeypatch.context() as patch:
        patch.setattr(_rt, "__file__", str(extension))
        source_hash.cache_clear()
        assert source_hash() != before
    for listed in ("source_files", "header_files"):
        with monkeypatch.context() as patch:
            patch.setattr(source_hash_module, listed, list)
            source_hash.cache_clear()
            assert source_hash() != before
    source_hash.cache_clear()
    assert source_hash() == before
