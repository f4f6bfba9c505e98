"""`weft cache` shows what is kept, and empties it."""

from __future__ import annotations

import json
import os
import re
import time
from pathlib import Path

import pytest
from tests.cli.commands import Cli

from weft.driver.cache.cache_folder import NAME, TAG


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The folder of an empty cache of the test's own, which does not exist yet."""
    monkeypatch.setenv("WEFT_CACHE_DIR", str(tmp_path / "cache"))
    return tmp_path / "cache" / NAME


def test_an_empty_cache(cli: Cli, folder: Path) -> None:
    assert cli("cache", "ls").out == "the cache holds no compiled model; --all lists kernels too\n"
    assert cli("cache", "ls", "--json").out == "[]\n"
    assert json.loads(cli("cache", "size", "--json").out) == {
        "folder": str(folder),
        "bytes": 0,
        "limit_bytes": 4 << 30,
        "models": {"count": 0, "bytes": 0},
        "kernels": {"count": 0, "bytes": 0},
    }
    assert cli("cache", "clear").out == f"removed 0 files, 0 B, from {folder}\n"
    assert not folder.exists()


def test_models_are_listed_with_what_they_were_made_from(cli: Cli, folder: Path) -> None:
    cli("run", "dense.onnx", "--random", "--shape", "batch=2", "-O", "1", "--without", "parallel")
    lines = cli("cache", "ls").out.splitlines()
    assert lines[0].split() == ["key", "kind", "size", "used", "what"]
    what = f"{Path('dense.onnx').resolve()}, cpu, -O1, without parallel, batch=2"
    assert re.fullmatch(rf"[0-9a-f]{{10}}  model  [\d.]+ KiB  just now  {re.escape(what)}", lines[2])
    assert len(lines) == 3
    (facts,) = json.loads(cli("cache", "ls", "--json").out)
    assert set(facts) == {"key", "kind", "bytes", "used", "about", "path"}
    assert facts["about"] == what
    assert facts["bytes"] == Path(facts["path"]).stat().st_size


def test_the_last_used_is_the_first(cli: Cli, folder: Path) -> None:
    for name in ("dense", "conv"):
        cli("run", f"{name}.onnx", "--random")
    for n, path in enumerate(sorted(folder.glob("model-*"))):
        os.utime(path, (n, n))
    cli("run", "dense.onnx", "--random")
    listed = [e["about"] for e in json.loads(cli("cache", "ls", "--json").out)]
    assert [Path(about.partition(",")[0]).name for about in listed] == ["dense.onnx", "conv.onnx"]


def test_kernels_are_listed_too(cli: Cli, folder: Path) -> None:
    cli("inspect", "conv.onnx", "-O", "1")  # which keeps kernels alone
    assert json.loads(cli("cache", "ls", "--json").out) == []
    listed = json.loads(cli("cache", "ls", "-a", "--json").out)
    assert {e["kind"] for e in listed} == {"kernel"}
    assert "conv2d_relu" in [e["about"] for e in listed]


def test_the_size(cli: Cli, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("WEFT_CACHE_LIMIT", "500MiB")
    cli("run", "dense.onnx", "--random")
    facts = json.loads(cli("cache", "size", "--json").out)
    assert facts["bytes"] == sum(p.stat().st_size for p in folder.glob("*-*"))
    assert facts["limit_bytes"] == 500 << 20
    assert (facts["models"]["count"], facts["kernels"]["count"]) == (1, len(list(folder.glob("kernel-*"))))
    lines = cli("cache", "size").out.splitlines()
    assert re.fullmatch(rf"{re.escape(str(folder))}: [\d.]+ KiB of at most 500\.0 MiB", lines[0])
    assert lines[1].split()[:2] == ["1", "models"]


def test_clearing(cli: Cli, folder: Path) -> None:
    first = cli("run", "dense.onnx", "--random", "-q").out
    count = len(list(folder.glob("*-*")))
    assert re.fullmatch(rf"removed {count} files, [\d.]+ KiB, from .*\n", cli("cache", "clear").out)
    assert os.listdir(folder) == [TAG]
    assert cli("run", "dense.onnx", "--random", "-q").out == first


def test_clearing_what_is_old(cli: Cli, folder: Path) -> None:
    cli("run", "mlp.onnx", "--random")
    kernels = sorted(folder.glob("kernel-*"))
    old = time.time() - 3 * 24 * 3600
    os.utime(kernels[0], (old, old))
    done = json.loads(cli("cache", "clear", "--older-than", "2", "--json").out)
    assert done["removed"] == 1
    assert done["bytes"] > 0
    assert sorted(folder.glob("kernel-*")) == kernels[1:]


def test_what_killed_processes_left_goes_too(cli: Cli, folder: Path) -> None:
    folder.mkdir(mode=0o700, parents=True)
    fresh = f".new-{1:016x}"
    for name, age in ((f".new-{0:016x}", 7200.0), (f".lock-model-{0:040x}", 7200.0), (fresh, 0.0)):
        (folder / name).touch()
        os.utime(folder / name, (time.time() - age,) * 2)
    cli("cache", "clear")
    assert os.listdir(folder) == [fresh]


@pytest.mark.parametrize(
    ("limit", "size"),
    [("500MB", 500_000_000), ("2 GiB", 2 << 30), ("1.5kib", 1536), ("3M", 3 << 20), ("77", 77), ("8B", 8)],
)
def test_units_of_the_limit(cli: Cli, folder: Path, monkeypatch: pytest.MonkeyPatch, limit: str, size: int) -> None:
    monkeypatch.setenv("WEFT_CACHE_LIMIT", limit)
    assert json.loads(cli("cache", "size", "--json").out)["limit_bytes"] == size


@pytest.mark.filterwarnings("always::weft.driver.cache.code_cache.CacheWarning")
@pytest.mark.parametrize("limit", ["much", "-1", "9" * 400])
def test_a_limit_that_is_none(cli: Cli, folder: Path, monkeypatch: pytest.MonkeyPatch, limit: str) -> None:
    monkeypatch.setenv("WEFT_CACHE_LIMIT", limit)
    done = cli("cache", "size", "--json")
    assert done.err == f"warning: WEFT_CACHE_LIMIT is '{limit}', which is no size such as 500MB or 2GiB\n"
    assert json.loads(done.out)["limit_bytes"] == 4 << 30


@pytest.mark.parametrize("command", ["ls", "size", "clear"])
def test_a_cache_that_is_none(cli: Cli, folder: Path, command: str) -> None:
    folder.parent.write_text("not a folder")
    done = cli("cache", command)
    assert (done.code, done.out) == (1, "")
    assert done.err == (
        f"error: the cache in {folder} can't be used: Not a directory\n"
        "  hint: set WEFT_CACHE_DIR to a folder of your own\n"
    )
