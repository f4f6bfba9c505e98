"""Files that Weft writes for its user: they appear whole or not at all, and take the place of nothing but plain files.

A symbolic link stays: its target is replaced, or made. A new file has the mode that the umask leaves it, one that is
replaced keeps its own. Failures are an `ArtifactError` that names the path as the user gave it; `check_output` finds most
of it before the work, not after.
"""

from __future__ import annotations

import os
import secrets
import stat
from collections.abc import Callable, Iterable
from contextlib import suppress
from pathlib import Path
from typing import IO, Final

from weft.support.errors import ArtifactError

TEMPORARY: Final = r"\.new-[0-9a-f]{16}"
"""The names of files that are being written, as a regular expression."""

NEW_FILE: Final = 0o666
"""The mode of new files, of which the umask takes away."""


def check_output(path: Path) -> None:
    """Raises `ArtifactError` unless a file can be made at *path*: its folder is there, and nothing but a file is in its way."""
    _destination(path)


def check_folder(path: Path) -> None:
    """Makes the folder *path* if there is none; raises `ArtifactError` where that fails or it can't be written in."""
    try:
        path.mkdir(parents=True, exist_ok=True)
    except OSError as e:
        raise _unwritable(path, e) from None
    check_output(path / "output")


def write_output(path: Path, write: Callable[[IO[bytes]], object]) -> None:
    """Lets *write* fill a file, which then appears at *path*; raises `ArtifactError` and leaves nothing where that fails."""
    place, mode = _destination(path)
    try:
        replace_file(place, write, mode)
    except OSError as e:
        raise _unwritable(path, e) from None


def write_pieces(path: Path, pieces: Iterable[bytes | memoryview]) -> None:
    """Writes *pieces* one after another to a file, as `write_output` does."""
    write_output(path, lambda file: file.writelines(pieces))


def replace_file(path: Path, write: Callable[[IO[bytes]], object], mode: int | None = None) -> None:
    """Lets *write* fill a new file beside *path*, and moves it there once it is whole; raises `OSError`.

    The file has exactly the permissions *mode*, by default those that the umask leaves a new file.
    """
    handle, name = _new_file(path.parent, NEW_FILE if mode is None else mode)
    try:
        with os.fdopen(handle, "wb") as file:
            if mode is not None:
                with suppress(OSError):  # not all file systems have modes
                    os.fchmod(handle, mode)
            write(file)
        os.replace(name, path)
    except BaseException:
        with suppress(OSError):
            os.unlink(name)
        raise


def _new_file(folder: Path, mode: int) -> tuple[int, Path]:
    """Returns a file that was not there before, open to be written and mapped, and its path."""
    while True:
        path = folder / f".new-{secrets.token_hex(8)}"
        with suppress(FileExistsError):
            return os.open(path, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, mode), path


def _destination(path: Path) -> tuple[Path, int | None]:
    """Returns the file that *path* stands for, links followed, and its mode, None for a file that is still to be made.

    Raises `ArtifactError` where it can't be written.
    """
    mode = _mode(path)
    place = Path(os.path.realpath(path)) if path.is_symlink() else path
    if not place.parent.is_dir():
        raise ArtifactError(
            f"{path} can't be written: there is no folder {place.parent}", hint="make it, or choose another"
        )
    if not os.access(place.parent, os.W_OK | os.X_OK):
        raise ArtifactError(
            f"{path} can't be written: you may not write in {place.parent.resolve()}", hint="choose another folder"
        )
    if mode is not None and not os.access(place, os.W_OK):
        raise ArtifactError(f"{path} can't be written: it is read-only", hint="choose another name")
    return place, mode


def _mode(path: Path) -> int | None:
    """Returns the permissions of the file at *path*, None if there is none; raises `ArtifactError` unless it is a plain file."""
    try:
        found = path.stat()  # the system may refuse to follow a link that somebody else put there
    except (FileNotFoundError, NotADirectoryError):
        return None
    except OSError as e:
        raise _unwritable(path, e) from None
    except ValueError:
        raise ArtifactError(f"{str(path)!r} is no name of a file", hint="choose another name") from None
    if not stat.S_ISREG(found.st_mode):
        raise ArtifactError(f"{path} can't be written: it is not a plain file", hint="choose another name")
    return stat.S_IMODE(found.st_mode) & 0o777


def _unwritable(path: Path, error: OSError) -> ArtifactError:
    return ArtifactError(f"{path} can't be written: {error.strerror or error}", hint="choose another place")
