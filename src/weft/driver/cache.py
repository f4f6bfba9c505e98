"""The on-disk cache: entries by key, checked, atomic, bounded in size.

An entry is a file `KIND-KEY`: its content preceded by its SHA-256, or an artifact, which has a checksum of its own. The folder
is `$WEFT_CACHE_DIR`, else `weft` in `$XDG_CACHE_HOME` or `~/.cache`; it is the user's alone (mode 0700), since machine code is
run from it. Reading an entry makes it the most recently used; the least recently used go first when the cache outgrows its size.
"""

from __future__ import annotations

import hashlib
import os
import stat
import tempfile
import threading
import warnings
from collections.abc import Callable
from contextlib import suppress
from functools import cache
from pathlib import Path
from typing import TypeVar

import weft
from weft.runtime.artifact import read_artifact, write_artifact
from weft.runtime.package import Package
from weft.support.errors import ArtifactError, CacheError

LIMIT = 4 << 30
"""Bytes that the cache may take on disk."""

DIGEST = hashlib.sha256().digest_size

T = TypeVar("T")


class CacheWarning(UserWarning):
    """The cache can't be used; compiling goes on without it."""


class Cache:
    """A folder of entries, for any number of threads and processes.

    Nothing here fails: at the first error of the system it warns, and goes on as a cache that is empty and stays so.
    """

    def __init__(self, folder: Path, limit: int = LIMIT) -> None:
        self.folder = folder
        self.limit = limit
        self._usable = True
        self._size: int | None = None  # of all entries, as far as this process knows; None before it looked
        self._lock = threading.Lock()

    def path(self, kind: str, key: str) -> Path:
        """Returns the file of an entry, whether or not it exists."""
        return self.folder / f"{kind}-{key}"

    def get(self, kind: str, key: str) -> bytes | None:
        """Returns an entry's content; None if there is none. A damaged one is dropped."""
        return self._read(self.path(kind, key), read_checked)

    def package(self, key: str) -> Package | None:
        """Returns a compiled model; None if there is none. A damaged one is dropped."""
        return self._read(self.path("model", key), lambda path: read_artifact(path) if path.exists() else None)

    def put(self, kind: str, key: str, content: bytes) -> None:
        """Writes an entry; it appears whole or not at all."""
        data = hashlib.sha256(content).digest() + content
        self._write(self.path(kind, key), lambda path: write_file(path, data))

    def put_package(self, key: str, package: Package) -> None:
        """Keeps a compiled model; its file appears whole or not at all."""
        self._write(self.path("model", key), lambda path: write_artifact(package, path))

    def _read(self, path: Path, read: Callable[[Path], T | None]) -> T | None:
        if not self._usable:
            return None
        try:
            check_owner(self.folder)
            found = read(path)
        except FileNotFoundError:
            return None
        except ArtifactError:  # damaged
            with suppress(OSError):
                path.unlink()
            return None
        except (OSError, CacheError) as e:
            self._give_up(e)
            return None
        with suppress(OSError):  # it may be read-only
            os.utime(path)
        return found

    def _write(self, path: Path, write: Callable[[Path], None]) -> None:
        if not self._usable:
            return
        try:
            self.folder.mkdir(mode=0o700, parents=True, exist_ok=True)
            check_owner(self.folder)
            write(path)
            self._grow(path)
        except (OSError, CacheError) as e:
            self._give_up(e)

    def _give_up(self, error: Exception) -> None:
        self._usable = False
        warnings.warn(f"Weft's cache is not used: {error}", CacheWarning, stacklevel=2)

    def _grow(self, path: Path) -> None:
        """Counts a new entry, and makes room when the entries outgrow the limit."""
        with self._lock:
            if self._size is not None and path.exists():
                self._size += path.stat().st_size
            if self._size is None or self._size > self.limit:
                self._size = self.shrink()

    def shrink(self) -> int:
        """Removes the least recently used entries until the rest fit the limit; returns the bytes that they take."""
        entries = sorted([(e.st_mtime_ns, e.st_size, path) for path, e in _entries(self.folder)])
        total = sum(size for _, size, _ in entries)
        for _, size, path in entries:
            if total <= self.limit:
                break
            with suppress(OSError):
                os.unlink(path)
            total -= size
        return total


def _entries(folder: Path) -> list[tuple[str, os.stat_result]]:
    found = []
    for entry in os.scandir(folder):
        with suppress(FileNotFoundError):  # removed by another process
            found.append((entry.path, entry.stat()))
    return found


def read_checked(path: Path) -> bytes:
    """Returns what `Cache.put` wrote; raises `ArtifactError` if its checksum is wrong."""
    data = path.read_bytes()
    if len(data) < DIGEST or hashlib.sha256(data[DIGEST:]).digest() != data[:DIGEST]:
        raise ArtifactError("its checksum is wrong", where=str(path))
    return data[DIGEST:]


def write_file(path: Path, content: bytes) -> None:
    """Writes a file beside *path*, and moves it there once it is whole."""
    handle, name = tempfile.mkstemp(dir=path.parent, prefix=".new-")
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(content)
        os.replace(name, path)
    except BaseException:
        with suppress(OSError):
            os.unlink(name)
        raise


def check_owner(folder: Path) -> None:
    """Refuses a folder that is another user's, or that others may write to: code is run from it."""
    found = folder.stat()
    if not stat.S_ISDIR(found.st_mode):
        raise CacheError(f"{folder} is not a folder", hint="set WEFT_CACHE_DIR to a folder of your own")
    if found.st_uid != os.getuid() or stat.S_IMODE(found.st_mode) & 0o022:
        raise CacheError(
            f"the cache folder {folder} belongs to, or may be written by, somebody else",
            hint=f"chmod 700 {folder}, or set WEFT_CACHE_DIR to a folder of your own",
        )


def default_cache() -> Cache:
    """Returns the cache in `$WEFT_CACHE_DIR`, else in `weft` in `$XDG_CACHE_HOME` or `~/.cache`."""
    given = os.environ.get("WEFT_CACHE_DIR")
    if given:
        return Cache(Path(given))
    base = os.environ.get("XDG_CACHE_HOME") or os.path.expanduser("~/.cache")
    if not os.path.isabs(base):  # there is no home
        return Cache(Path(tempfile.gettempdir()) / f"weft-{os.getuid()}")
    return Cache(Path(base) / "weft")


def digest(*parts: object) -> str:
    """Returns a key for *parts*, by their text."""
    joined = hashlib.sha256()
    for part in parts:
        text = str(part).encode()
        joined.update(len(text).to_bytes(8, "little") + text)
    return joined.hexdigest()[:40]


@cache
def source_hash() -> str:
    """Returns a hash of Weft's own source: code from another version of the compiler is never reused."""
    joined = hashlib.sha256()
    root = Path(weft.__file__).parent
    for path in sorted(root.rglob("*.py")):
        joined.update(str(path.relative_to(root)).encode() + path.read_bytes())
    return joined.hexdigest()
