"""`WEFT_CACHE_DIR` may name any folder, even one full of the user's files: no command touches one of them."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
import pytest
from tests.cli.commands import Cli

import weft
from weft.driver.cache.cache_folder import NAME
from weft.driver.cache.code_cache import CacheWarning

OLD = 3 * 3600.0
FOREIGN = ("thesis.tex", ".bashrc", ".new-notes", ".lock-down", "model-1", "kernel-plan", "model-" + "0" * 40)


def compiled(_: Cli) -> None:
    x = np.ones((2, 24), np.float32)
    np.testing.assert_array_equal(np.asarray(weft.compile("mlp.onnx")(x)), np.asarray(weft.compile("mlp.onnx")(x)))


def command(*args: str) -> Callable[[Cli], None]:
    def call(cli: Cli) -> None:
        for _ in range(2):
            assert cli(*args).code == 0

    return call


USES: dict[str, Callable[[Cli], None]] = {
    "weft.compile": compiled,
    "run": command("run", "mlp.onnx", "--random"),
    "compile": command("compile", "mlp.onnx", "-o", "mlp.weft"),
    "inspect": command("inspect", "mlp.onnx"),
    "doctor": lambda cli: print(cli("doctor")),
    "cache ls": command("cache", "ls", "--all"),
    "cache size": command("cache", "size"),
    "cache clear": command("cache", "clear"),
}


def snapshot() -> dict[str, tuple[bytes, int]]:
    return {p.name: (p.read_bytes(), p.stat().st_mtime_ns) for p in Path().iterdir() if p.is_file()}


@pytest.mark.sampled(4)
@pytest.mark.parametrize("use", USES)
@pytest.mark.parametrize("given", [".", "link"])
def test_files_of_the_user_stay(
    cli: Cli, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, use: str, given: str
) -> None:
    tmp_path.chmod(0o755)
    for name in FOREIGN:
        Path(name).write_text("precious")
    for path in tmp_path.iterdir():
        os.utime(path, (time.time() - OLD,) * 2)
    before = snapshot()
    (tmp_path / "link").symlink_to(".")
    monkeypatch.setenv("WEFT_CACHE_DIR", given)
    monkeypatch.setenv("WEFT_CACHE_LIMIT", "1")  # so that entries are removed, too
    USES[use](cli)
    after = snapshot()
    assert {name: after.get(name) for name in before} == before
    assert after.keys() - before.keys() <= {"mlp.weft"}


@pytest.fixture
def taken(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A folder of the user's where the cache would be; the test must leave it as it is."""
    monkeypatch.setenv("WEFT_CACHE_DIR", ".")
    folder = tmp_path / NAME
    folder.mkdir(mode=0o700)
    for name in FOREIGN:
        (folder / name).write_text("precious")
        os.utime(folder / name, (time.time() - OLD,) * 2)
    yield folder
    assert {p.name: p.read_text() for p in folder.iterdir()} == dict.fromkeys(FOREIGN, "precious")


@pytest.mark.parametrize("use", ["ls", "size", "clear"])
def test_a_folder_of_the_caches_name_is_refused(cli: Cli, taken: Path, use: str) -> None:
    done = cli("cache", use)
    assert (done.code, done.out) == (1, "")
    assert done.err.startswith(f"error: {taken} is no cache that Weft made: it holds ")


@pytest.mark.sampled(1)
@pytest.mark.filterwarnings("always::weft.driver.cache.code_cache.CacheWarning")
@pytest.mark.parametrize(
    "args", [("run", "mlp.onnx", "--random"), ("compile", "mlp.onnx", "-o", "mlp.weft"), ("inspect", "mlp.onnx")]
)
def test_commands_do_without_a_folder_that_is_not_the_caches(cli: Cli, taken: Path, args: tuple[str, ...]) -> None:
    done = cli(*args)
    assert done.code == 0
    assert done.err.count(f"warning: Weft's cache is not used: {taken} is no cache that Weft made") == 1


def test_a_folder_that_is_not_the_caches_is_a_finding(cli: Cli, taken: Path) -> None:
    assert "is no cache that Weft made" in " ".join(cli("doctor").out.split())


def test_compiling_does_without_a_folder_that_is_not_the_caches(cli: Cli, taken: Path) -> None:
    with pytest.warns(CacheWarning, match="is no cache that Weft made"):
        compiled(cli)
