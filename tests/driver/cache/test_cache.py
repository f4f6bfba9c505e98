"""The cache: private, atomic, bounded; damaged entries are made again, and nothing that goes wrong with it is fatal."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np
import pytest
from tests.models import mlp

import weft
from weft.driver.cache.cache_folder import NAME, TAG
from weft.driver.cache.code_cache import _KNOWN_SIZES, Cache, CacheWarning, default_cache

KEY = "0" * 40


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The folder of an empty cache of the test's own, which does not exist yet."""
    monkeypatch.setenv("WEFT_CACHE_DIR", str(tmp_path / "cache"))
    return tmp_path / "cache" / NAME


@pytest.fixture
def model(tmp_path: Path) -> Path:
    path = tmp_path / "mlp.onnx"
    path.write_bytes(mlp().SerializeToString())
    return path


def run(model: Path) -> bytes:
    result = weft.compile(model)(np.ones((2, 24), np.float32))
    assert isinstance(result, np.ndarray)
    return result.tobytes()


def entries(folder: Path) -> dict[str, bytes]:
    return {p.name: p.read_bytes() for p in folder.iterdir() if p.name != TAG}


def key(n: int) -> str:
    return f"{n:040x}"


def test_what_is_put_is_got(folder: Path) -> None:
    cache = Cache(folder)
    assert cache.get("kernel", KEY) is None
    cache.put("kernel", KEY, b"content")
    assert cache.get("kernel", KEY) == b"content"
    assert Cache(folder).get("kernel", KEY) == b"content"
    assert cache.get("model", KEY) is None


def test_the_folder_is_the_users_alone(folder: Path) -> None:
    Cache(folder).put("kernel", KEY, b"")
    assert folder.stat().st_mode & 0o777 == 0o700


@pytest.mark.parametrize("content", [b"", b"short", b"x" * 100])
def test_a_damaged_entry_is_dropped(folder: Path, content: bytes) -> None:
    cache = Cache(folder)
    cache.put("kernel", KEY, b"content")
    cache.path("kernel", KEY).write_bytes(content)
    assert cache.get("kernel", KEY) is None
    assert not cache.path("kernel", KEY).exists()


def test_every_damaged_entry_of_a_model_is_made_again(folder: Path, model: Path) -> None:
    wanted = run(model)
    whole = entries(folder)
    assert {name.partition("-")[0] for name in whole} == {"about", "files", "kernel", "model"}
    for name, content in whole.items():
        (folder / name).write_bytes(content[:-1] + bytes([content[-1] ^ 1]))
    assert run(model) == wanted
    assert entries(folder).keys() == whole.keys()
    for path in map(folder.joinpath, whole):
        path.write_bytes(path.read_bytes()[: path.stat().st_size // 2])
    assert run(model) == wanted


def test_the_least_recently_used_go_first(folder: Path) -> None:
    cache = Cache(folder, limit=350)
    for n in range(3):
        cache.put("kernel", key(n), bytes(60))  # 92 bytes on disk
        os.utime(cache.path("kernel", key(n)), ns=(n, n))
    assert cache.get("kernel", key(0)) is not None  # now the most recently used
    cache.put("kernel", key(3), bytes(60))
    assert [n for n in range(4) if cache.get("kernel", key(n)) is not None] == [0, 2, 3]


def test_a_new_process_counts_what_is_there(folder: Path) -> None:
    for n in range(5):
        _KNOWN_SIZES.clear()
        Cache(folder, limit=200).put("kernel", key(n), bytes(60))
        os.utime(folder / f"kernel-{key(n)}", ns=(n, n))
    assert sorted(entries(folder)) == [f"kernel-{key(3)}", f"kernel-{key(4)}"]


def test_without_cache_nothing_is_read_or_written(folder: Path, model: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    weft.compile(model, cache=False)
    assert not folder.exists()
    weft.compile(model)
    before = {p: p.stat().st_mtime_ns for p in folder.iterdir()}
    monkeypatch.setattr(Cache, "_read", lambda *_: pytest.fail("the cache was read"))
    weft.compile(model, cache=False)
    assert {p: p.stat().st_mtime_ns for p in folder.iterdir()} == before


def test_a_folder_that_others_may_write_to_is_refused(folder: Path, model: Path) -> None:
    folder.mkdir(mode=0o700, parents=True)
    folder.chmod(0o777)
    with pytest.warns(CacheWarning) as told:
        run(model)
    assert [str(w.message) for w in told] == [
        f"Weft's cache is not used: the cache folder {folder} belongs to, or may be written by, somebody else\n"
        f"  hint: chmod 700 {folder}, or set WEFT_CACHE_DIR to a folder of your own"
    ]
    assert list(folder.iterdir()) == []


def test_a_folder_of_somebody_else_is_refused(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    cache = Cache(folder)
    cache.put("kernel", KEY, b"content")
    monkeypatch.setattr(os, "getuid", lambda: folder.stat().st_uid + 1)
    with pytest.warns(CacheWarning, match="belongs to, or may be written by, somebody else"):
        assert cache.get("kernel", KEY) is None


def test_a_file_in_the_folders_place_is_told_once(folder: Path, model: Path) -> None:
    folder.parent.mkdir()
    folder.write_text("not a folder")
    with pytest.warns(CacheWarning) as told:
        run(model)
    assert len(told) == 1
    assert "not used" in str(told[0].message)


def test_a_folder_that_cannot_be_made_is_told_once(model: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("WEFT_CACHE_DIR", "/proc/weft")
    with pytest.warns(CacheWarning) as told:
        run(model)
    assert [str(w.message) for w in told] == [
        "Weft's cache is not used: [Errno 2] No such file or directory: '/proc/weft'"
    ]


def test_a_full_disk_leaves_nothing_behind(folder: Path, model: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*_: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "replace", full)
    with pytest.warns(CacheWarning, match="No space left on device"):
        run(model)
    assert list(folder.iterdir()) == []


def test_two_processes_may_compile_at_once(folder: Path, model: Path) -> None:
    code = "import sys, numpy, weft; y = weft.compile(sys.argv[1])(numpy.ones((2, 24), numpy.float32)); print(y.tobytes().hex())"
    command = [sys.executable, "-W", "error", "-c", code, str(model)]
    processes = [subprocess.Popen(command, stdout=subprocess.PIPE, text=True) for _ in range(2)]
    printed = {p.communicate()[0].strip() for p in processes}
    assert [p.returncode for p in processes] == [0, 0]
    assert printed == {run(model).hex()}
    assert not [p.name for p in folder.iterdir() if p.name.startswith(".")]


def test_where_the_cache_is(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("WEFT_CACHE_DIR", str(tmp_path / "given"))
    assert default_cache().folder == tmp_path / "given" / NAME
    monkeypatch.delenv("WEFT_CACHE_DIR")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "xdg"))
    assert default_cache().folder == tmp_path / "xdg" / "weft" / NAME
    monkeypatch.delenv("XDG_CACHE_HOME")
    monkeypatch.setenv("HOME", str(tmp_path))
    assert default_cache().folder == tmp_path / ".cache" / "weft" / NAME
    monkeypatch.setattr(os.path, "expanduser", lambda path: path)  # as where there is no home
    assert default_cache().folder == Path(tempfile.gettempdir()) / f"{NAME}-{os.getuid()}"


def test_a_process_looks_at_all_entries_once(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    looks: list[int] = []
    shrink = Cache.shrink

    def counted(self: Cache) -> int:
        looks.append(shrink(self))
        return looks[-1]

    monkeypatch.setattr(Cache, "shrink", counted)
    for n in range(4):
        Cache(folder).put("kernel", key(n), bytes(60))
    assert looks == [60 + 32]
    Cache(folder, limit=300).put("kernel", key(4), bytes(60))
    assert looks == [60 + 32, 3 * (60 + 32)]
