"""What is written appears whole or not at all, in the place of plain files only, with the mode that the user wants."""

from __future__ import annotations

import os
import socket
import stat
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from tests.runtime.conftest import FlatImage
from tests.runtime.test_model import affine

from weft.runtime import load
from weft.runtime.file_names import OTHER_KINDS
from weft.support.errors import ArtifactError
from weft.support.files import check_output, write_output, write_pieces


@pytest.fixture
def umask() -> Iterator[Callable[[int], int]]:
    """Sets the umask until the test ends."""
    before = os.umask(0o022)
    yield os.umask
    os.umask(before)


def mode(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


def refusal(path: Path) -> str:
    """What is said of *path*, the same before the work as after."""
    with pytest.raises(ArtifactError) as early:
        check_output(path)
    with pytest.raises(ArtifactError) as late:
        write_pieces(path, [b"x"])
    assert str(early.value) == str(late.value)
    return str(early.value)


def test_a_file_appears_whole_or_not_at_all(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "x"
    write_pieces(path, [b"be", b"fore"])

    def fail(file: object) -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        write_output(path, fail)
    monkeypatch.setattr(os, "replace", fail)
    with pytest.raises(TypeError):  # from the call of `fail` with two arguments
        write_pieces(path, [b"after"])
    assert {p.name: p.read_bytes() for p in tmp_path.iterdir()} == {"x": b"before"}


@pytest.mark.parametrize(("mask", "expected"), [(0o077, 0o600), (0o022, 0o644), (0o002, 0o664)])
def test_new_files_have_the_mode_that_the_umask_leaves(
    flat: FlatImage, tmp_path: Path, umask: Callable[[int], int], mask: int, expected: int
) -> None:
    umask(mask)
    affine(flat).save(tmp_path / "m.weft")
    assert mode(tmp_path / "m.weft") == expected


def test_a_file_that_is_replaced_keeps_its_mode(tmp_path: Path, umask: Callable[[int], int]) -> None:
    path = tmp_path / "secret"
    path.touch()
    for wanted in (0o600, 0o666, 0o4640):
        path.chmod(wanted)
        write_pieces(path, [b"x"])
        assert mode(path) == wanted & 0o777


def test_a_link_stays_and_its_file_is_replaced(flat: FlatImage, tmp_path: Path) -> None:
    link, target = tmp_path / "current.weft", tmp_path / "versions" / "v12.weft"
    target.parent.mkdir()
    target.write_bytes(b"before")
    (tmp_path / "hop").symlink_to(target)
    link.symlink_to("hop")
    affine(flat).save(link)
    assert link.readlink() == Path("hop")
    assert not target.is_symlink()
    load(target)
    assert os.listdir(target.parent) == ["v12.weft"]


def test_a_link_to_nothing_makes_the_file_it_points_to(tmp_path: Path) -> None:
    link = tmp_path / "link"
    link.symlink_to("new")
    write_pieces(link, [b"x"])
    assert (tmp_path / "new").read_bytes() == b"x"
    assert link.is_symlink()


def test_links_that_lead_nowhere(tmp_path: Path) -> None:
    (tmp_path / "lost").symlink_to("gone/new")
    (tmp_path / "loop").symlink_to("loop")
    (tmp_path / "null").symlink_to("/dev/null")
    assert refusal(tmp_path / "lost") == (
        f"{tmp_path}/lost can't be written: there is no folder {tmp_path}/gone\n  hint: make it, or choose another"
    )
    assert refusal(tmp_path / "loop") == (
        f"{tmp_path}/loop can't be written: Too many levels of symbolic links\n  hint: choose another place"
    )
    assert refusal(tmp_path / "null").startswith(f"{tmp_path}/null can't be written: it is not a plain file")
    assert stat.S_ISCHR(os.stat("/dev/null").st_mode)


def test_what_is_no_plain_file_is_refused(tmp_path: Path) -> None:
    (tmp_path / "folder").mkdir()
    os.mkfifo(tmp_path / "pipe")
    with socket.socket(socket.AF_UNIX) as listening:
        listening.bind(str(tmp_path / "socket"))
        for path in [tmp_path / "folder", tmp_path / "pipe", tmp_path / "socket", Path("/dev/null"), Path("/dev/full")]:
            before = path.stat()
            assert refusal(path) == f"{path} can't be written: it is not a plain file\n  hint: choose another name"
            assert path.stat().st_ino == before.st_ino
    assert sorted(os.listdir(tmp_path)) == ["folder", "pipe", "socket"]


def test_errors_name_the_path_that_was_given(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    assert refusal(tmp_path / "gone" / "m.weft") == (
        f"{tmp_path}/gone/m.weft can't be written: there is no folder {tmp_path}/gone\n"
        "  hint: make it, or choose another"
    )
    assert refusal(tmp_path / "file" / "m").startswith(f"{tmp_path}/file/m can't be written: there is no folder")
    assert refusal(tmp_path / ("x" * 300)).endswith("File name too long\n  hint: choose another place")
    assert refusal(tmp_path / "a\0b") == f"'{tmp_path}/a\\x00b' is no name of a file\n  hint: choose another name"
    write_pieces(tmp_path / ("x" * 255), [b"x"])  # the longest name that there is


def test_a_read_only_file_is_left_alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "kept"
    path.touch()
    monkeypatch.setattr(os, "access", lambda p, m: Path(p) != path)  # root may write anything
    assert refusal(path) == f"{path} can't be written: it is read-only\n  hint: choose another name"


@pytest.mark.parametrize("ending", sorted({*OTHER_KINDS, ".SO"}))
def test_names_of_other_kinds_are_refused(flat: FlatImage, tmp_path: Path, ending: str) -> None:
    with pytest.raises(ArtifactError, match="a saved model is not "):
        affine(flat).save(tmp_path / f"m{ending}")
    assert os.listdir(tmp_path) == []


def test_a_library_is_made_by_the_command(flat: FlatImage) -> None:
    with pytest.raises(ArtifactError) as caught:
        affine(flat).save("m.so")
    assert str(caught.value) == (
        "m.so can't be written: a saved model is not a shared library\n"
        "  hint: `weft compile MODEL -o m.so` makes one; or end the name in .weft"
    )
