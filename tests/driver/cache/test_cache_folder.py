"""The cache's folder: Weft's own, marked, of one user; what is not Weft's is never touched."""

from __future__ import annotations

import os
import stat
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from weft.driver.cache.cache_folder import NAME, TAG, check_folder, default_folder, make_folder, sweep
from weft.driver.cache.code_cache import Cache, CacheWarning
from weft.support.errors import CacheError

KEY = "0" * 40
SIGNATURE = b"Signature: 8a477f597d28d172789f06886806bc55\n"  # of the Cache Directory Tagging Specification


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return tmp_path / NAME


def refusal(folder: Path) -> str:
    """What is said of a folder, by all that would use it; none of it leaves a trace."""
    before = snapshot(folder.parent)
    told = set()
    for use in (check_folder, make_folder, lambda f: Cache(f).entries(), lambda f: Cache(f).remove([])):
        with pytest.raises(CacheError) as caught:
            use(folder)
        told.add(str(caught.value))
    calls: list[Callable[[Cache], object]] = [
        lambda c: c.put("kernel", KEY, b"content"),
        lambda c: c.get("kernel", KEY),
        lambda c: c.claim("kernel", KEY).release(),
    ]
    for call in calls:
        with pytest.warns(CacheWarning) as warned:
            call(Cache(folder))
        told |= {str(w.message).removeprefix("Weft's cache is not used: ") for w in warned}
    assert len(told) == 1
    assert snapshot(folder.parent) == before
    return told.pop()


def snapshot(folder: Path) -> dict[str, tuple[int, bytes]]:
    return {
        str(p.relative_to(folder)): (p.lstat().st_mode, p.read_bytes() if p.is_file() else b"")
        for p in folder.rglob("*")
    }


def test_the_folder_is_marked_as_other_programs_know_it(folder: Path) -> None:
    make_folder(folder)
    assert (folder / TAG).read_bytes().startswith(SIGNATURE)
    assert stat.S_IMODE(folder.stat().st_mode) == 0o700
    assert os.listdir(folder) == ["CACHEDIR.TAG"]
    check_folder(folder)


def test_folders_on_the_way_are_the_users_alone(tmp_path: Path) -> None:
    before = os.umask(0o002)
    try:
        make_folder(tmp_path / "a" / "b" / NAME)
    finally:
        os.umask(before)
    assert stat.S_IMODE((tmp_path / "a").stat().st_mode) == 0o700
    assert stat.S_IMODE((tmp_path / "a" / "b").stat().st_mode) == 0o700


@pytest.mark.parametrize("name", ["thesis.tex", "kernel-12", "model-0.onnx", f"notes-{KEY}", ".new-abc", ".lock-x"])
def test_a_folder_with_anything_else_is_refused(folder: Path, name: str) -> None:
    folder.mkdir(mode=0o700)
    (folder / name).write_bytes(b"precious")
    assert refusal(folder) == (
        f"{folder} is no cache that Weft made: it holds {name!r}, and no CACHEDIR.TAG of Weft's\n"
        "  hint: move its files elsewhere, or set WEFT_CACHE_DIR to a folder of your own"
    )


def test_the_marker_of_another_program_is_none(folder: Path) -> None:
    folder.mkdir(mode=0o700)
    (folder / TAG).write_bytes(SIGNATURE + b"# This file is a cache directory tag created by fontconfig.\n")
    assert "it holds 'CACHEDIR.TAG'" in refusal(folder)


def test_a_linked_marker_is_none(folder: Path, tmp_path: Path) -> None:
    make_folder(tmp_path / "real")
    folder.mkdir(mode=0o700)
    (folder / TAG).symlink_to(tmp_path / "real" / TAG)
    assert "it holds 'CACHEDIR.TAG'" in refusal(folder)


def test_what_a_process_writes_before_it_marks_the_folder_is_no_obstacle(folder: Path) -> None:
    folder.mkdir(mode=0o700)
    for name in (f".new-{0:016x}", f".lock-model-{KEY}", f"kernel-{KEY}"):
        (folder / name).touch()
    make_folder(folder)
    assert (folder / TAG).exists()


@pytest.mark.parametrize("use", [make_folder, check_folder])
def test_a_marker_that_another_process_writes_meanwhile_is_no_obstacle(
    folder: Path, use: Callable[[Path], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    make_folder(folder)
    tag = (folder / TAG).read_bytes()
    (folder / TAG).unlink()
    listdir = os.listdir

    def marked_meanwhile(path: Path) -> list[str]:
        (folder / TAG).write_bytes(tag)
        return listdir(path)

    monkeypatch.setattr(os, "listdir", marked_meanwhile)
    use(folder)
    assert (folder / TAG).read_bytes() == tag


def test_a_link_is_refused(folder: Path, tmp_path: Path) -> None:
    victim = tmp_path / "home"
    victim.mkdir(mode=0o700)
    (victim / "thesis.tex").write_text("precious")
    folder.symlink_to(victim)
    assert refusal(folder) == (
        f"the cache folder {folder} is a symbolic link, which is not followed\n"
        "  hint: set WEFT_CACHE_DIR to a folder of your own"
    )


def test_a_link_to_nothing_is_refused(folder: Path, tmp_path: Path) -> None:
    folder.symlink_to(tmp_path / "gone")
    assert "is a symbolic link" in refusal(folder)
    assert not (tmp_path / "gone").exists()


def test_where_there_is_no_home_a_planted_link_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Everybody may write to the system's folder of temporary files, and make a link there before Weft does."""
    shared, victim = tmp_path / "tmp", tmp_path / "home"
    shared.mkdir()
    shared.chmod(0o1777)
    victim.mkdir(mode=0o700)
    (victim / "thesis.tex").write_text("precious")
    monkeypatch.setattr(tempfile, "tempdir", str(shared))
    monkeypatch.delenv("WEFT_CACHE_DIR")
    monkeypatch.delenv("XDG_CACHE_HOME", raising=False)
    monkeypatch.setattr(os.path, "expanduser", lambda path: path)
    folder = default_folder()
    assert folder.parent == shared
    folder.symlink_to(victim)
    assert "is a symbolic link" in refusal(folder)
    folder.unlink()
    make_folder(folder)  # others can't replace it there
    check_folder(folder)


@pytest.mark.parametrize("mode", [0o777, 0o770, 0o702])
def test_a_folder_in_one_that_others_may_write_to_is_refused(folder: Path, mode: int) -> None:
    make_folder(folder)
    folder.parent.chmod(mode)
    assert refusal(folder) == (
        f"the cache folder {folder.parent} belongs to, or may be written by, somebody else\n"
        f"  hint: chmod 700 {folder.parent}, or set WEFT_CACHE_DIR to a folder of your own"
    )


def test_a_link_that_the_user_names_is_resolved_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "real").mkdir()
    (tmp_path / "link").symlink_to("real")
    monkeypatch.setenv("WEFT_CACHE_DIR", str(tmp_path / "link"))
    assert default_folder() == tmp_path / "real" / NAME
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("WEFT_CACHE_DIR", ".")
    assert default_folder() == tmp_path / NAME


def aged(path: Path) -> Path:
    path.touch()
    os.utime(path, (time.time() - 7200,) * 2)
    return path


def removing() -> list[Callable[[Path], object]]:
    return [sweep, lambda f: Cache(f, limit=0).shrink(), lambda f: Cache(f).remove(Cache(f).entries())]


@pytest.mark.parametrize("remove", removing(), ids=["sweep", "shrink", "remove"])
def test_only_what_weft_wrote_is_removed(folder: Path, remove: Callable[[Path], object], tmp_path: Path) -> None:
    make_folder(folder)
    names = (
        "thesis.tex",
        ".bashrc",
        "kernel-12",
        f"model-{KEY}x",
        f"Model-{KEY}",
        f"model-{KEY}\n",
        ".new-1",
        ".lock-x-1",
    )
    foreign = [aged(folder / name) for name in names]
    (folder / f"model-{KEY}").mkdir()
    (folder / f".new-{0:016x}").mkdir()
    (folder / f"kernel-{KEY}").symlink_to(aged(tmp_path / "elsewhere"))
    own = aged(folder / f".new-{1:016x}")
    remove(folder)
    assert not own.exists()
    assert all(p.exists() for p in foreign)
    assert (tmp_path / "elsewhere").exists()
    assert (folder / f"kernel-{KEY}").is_symlink()
    assert (folder / TAG).exists()
