"""The cache directory: created and marked by Weft, which removes only files that it wrote.

It is called `weft-cache`, in `$WEFT_CACHE_DIR`, else in `weft` in `$XDG_CACHE_HOME` or `~/.cache`: whatever else is in a folder
that the user names is out of reach. The marker is a `CACHEDIR.TAG` (https://bford.info/cachedir/), which programs that
make backups know. The folder belongs to one user, and is no symbolic link, since machine code is run from it.
"""

from __future__ import annotations

import os
import re
import stat
import tempfile
import time
from contextlib import suppress
from pathlib import Path
from typing import Final

from weft.support.errors import CacheError
from weft.support.files import TEMPORARY, replace_file

NAME: Final = "weft-cache"
KINDS: Final = ("about", "core", "files", "kernel", "model", "probe", "workloads")
"""The kinds of entries: compiled models and kernels, notes on both, facts measured of a processor, probes of `weft doctor` to see
whether writing works, and the workloads for which tuning records were looked up."""

ENTRY: Final = re.compile(rf"({'|'.join(KINDS)})-([0-9a-f]{{40}})")
"""The names of entries."""

PASSING: Final = re.compile(rf"{TEMPORARY}|\.lock-({'|'.join(KINDS)})-[0-9a-f]{{40}}")
"""The names of files that are there only while somebody writes an entry."""

ABANDONED: Final = 3600.0
"""Seconds after which such a file was left by a process that was killed."""

TAG: Final = "CACHEDIR.TAG"
_MARK: Final = b"""Signature: 8a477f597d28d172789f06886806bc55
# This file is a cache directory tag created by Weft.
"""
_TAG_TEXT: Final = (
    _MARK
    + b"""# Everything beside it can be removed (`weft cache clear`), and is made again when it is needed.
# For information about cache directory tags, see https://bford.info/cachedir/
"""
)
_ELSEWHERE: Final = "set WEFT_CACHE_DIR to a folder of your own"


def default_folder() -> Path:
    """Returns the folder of the cache, which need not exist."""
    given = os.environ.get("WEFT_CACHE_DIR")
    base = os.environ.get("XDG_CACHE_HOME") or os.path.expanduser("~/.cache")
    if not given and not os.path.isabs(base):  # there is no home
        return Path(tempfile.gettempdir()) / f"{NAME}-{os.getuid()}"
    return Path(os.path.realpath(given or os.path.join(base, "weft")), NAME)  # so that nobody turns a link meanwhile


def make_folder(folder: Path) -> None:
    """Makes the folder and its marker where they are missing; raises `CacheError` for one that is not the cache's."""
    missing = []
    for path in (folder, *folder.parents):
        if os.path.lexists(path):
            break
        missing.append(path)
    for path in reversed(missing):
        with suppress(FileExistsError):  # made by another process
            path.mkdir(mode=0o700)
    check_owner(folder)
    if not _is_marked(folder):
        _check_own(folder)
        replace_file(folder / TAG, lambda file: file.write(_TAG_TEXT), 0o600)


def check_folder(folder: Path) -> None:
    """Raises `CacheError` for a folder that is not the cache's, `FileNotFoundError` where there is none."""
    check_owner(folder)
    if not _is_marked(folder):
        _check_own(folder)


def check_owner(folder: Path) -> None:
    """Refuses a folder that is another user's, or a link, or that others may write to or replace: code is run from it."""
    found, parent = folder.lstat(), folder.parent.stat()
    if stat.S_ISLNK(found.st_mode):
        raise CacheError(f"the cache folder {folder} is a symbolic link, which is not followed", hint=_ELSEWHERE)
    if not stat.S_ISDIR(found.st_mode):
        raise CacheError(f"{folder} is not a folder", hint=_ELSEWHERE)
    if found.st_uid != os.getuid() or stat.S_IMODE(found.st_mode) & 0o022:
        raise _others(folder)
    shared = parent.st_mode & 0o022 and not parent.st_mode & stat.S_ISVTX  # in /tmp nobody moves files of others
    if parent.st_uid not in (os.getuid(), 0) or shared:
        raise _others(folder.parent)


def _others(folder: Path) -> CacheError:
    return CacheError(
        f"the cache folder {folder} belongs to, or may be written by, somebody else",
        hint=f"chmod 700 {folder}, or {_ELSEWHERE}",
    )


def _is_marked(folder: Path) -> bool:
    """Tells whether Weft made *folder*."""
    with suppress(OSError):
        file = os.open(folder / TAG, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
        with os.fdopen(file, "rb") as tag:
            return tag.read(len(_MARK)) == _MARK
    return False


def _check_own(folder: Path) -> None:
    """Refuses a folder without marker in which there is anything that Weft did not write.

    Files that another process writes before the marker are Weft's own, and so is a marker written meanwhile.
    """
    for name in os.listdir(folder):
        if name == TAG and _is_marked(folder):
            return
        if not ENTRY.fullmatch(name) and not PASSING.fullmatch(name):
            raise CacheError(
                f"{folder} is no cache that Weft made: it holds {name!r}, and no {TAG} of Weft's",
                hint=f"move its files elsewhere, or {_ELSEWHERE}",
            )


def sweep(folder: Path) -> None:
    """Removes the files of processes that were killed while they wrote."""
    for file in os.scandir(folder):
        with suppress(OSError):
            if PASSING.fullmatch(file.name) and time.time() - file.stat(follow_symlinks=False).st_mtime > ABANDONED:
                os.unlink(file.path)
